//! What becomes of a name: a slug of its own that lasts.

use serde_json::json;
use tokio::task::JoinSet;

use super::{Answer, Caller, session, text};
use crate::support::gateway::Gateway;

fn is_slug(text: &str) {
    let well_formed = !text.is_empty()
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    assert!(well_formed, "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_gives_a_slug_that_lasts() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    for (name, expected) in [
        ("ACME", Some("acme")),
        ("My Great App", Some("mygreatapp")),
        ("Crème Brûlée", Some("cremebrulee")),
        ("Straße 7", Some("strasse7")),
        ("🚀", None),
        ("🚀🚀 App", None),
        ("日本語", None),
        ("مرحبا", None),
        ("---", None),
        ("???", None),
        (" x ", Some("x")),
        (&"A".repeat(255), None),
        (&"é".repeat(255), None),
        (&"🚀".repeat(255), None),
    ] {
        let app = caller.create(name).await;
        assert_eq!(app["name"], name);
        let slug = text(&app, "app_id");
        is_slug(slug);
        if let Some(expected) = expected {
            assert_eq!(slug, expected, "{name}");
        }
        let path = format!("/apps/{}", text(&app, "pushable_key"));
        let renamed = caller.put(&path, &json!({ "name": "Renamed" })).await;
        assert_eq!(renamed.success(200)["app_id"], slug);
        let detail = caller.get(&path).await.success(200);
        assert_eq!(detail["app_id"], slug);
        session(&gateway, slug, text(&app, "send_key")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn namesakes_made_at_once_each_get_their_own() {
    let gateway = Gateway::start().await;
    let mut creations = JoinSet::new();
    for number in 0..10 {
        let caller = Caller::another(&gateway, &format!("Subscriber {number}")).await;
        let request = caller.request(reqwest::Method::POST, "/apps");
        creations.spawn(Answer::to(request.json(&json!({ "name": "Same Name" }))));
    }
    let mut slugs = Vec::new();
    for answer in creations.join_all().await {
        let app = answer.success(201);
        let slug = text(&app, "app_id").to_owned();
        is_slug(&slug);
        assert!(slug.starts_with("samename"), "{slug}");
        session(&gateway, &slug, text(&app, "send_key")).await;
        slugs.push(slug);
    }
    slugs.sort_unstable();
    slugs.dedup();
    assert_eq!(slugs.len(), 10);
    assert_eq!(slugs[0], "samename");
}
