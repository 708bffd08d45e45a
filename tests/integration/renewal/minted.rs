//! What was created with the old secret: listed, ended on request, and told by mail.

use chrono::TimeDelta;
use mail_parser::MessageParser;
use reqwest::Method;
use serde_json::{Value, json};

use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::Gateway;

/// An additional API secret and an additional send key, with a link each to the portal and to connect a mailbox.
struct Left {
    api_secret: Value,
    send_key: Value,
    pushable_key: String,
    link: String,
}

async fn leave(owner: &Caller<'_>) -> Left {
    let app = path(&owner.gateway.app);
    let new = json!({ "name": "Left behind", "scopes": ["me:read"] });
    let api_secret = owner.post("/me/api-secrets", &new).await.success(201);
    let new = json!({ "name": "Left behind" });
    let send_key = owner
        .post(&format!("{app}/send-keys"), &new)
        .await
        .success(201);
    let sessions = format!("{app}/connect-sessions");
    owner.post(&sessions, &json!({})).await.success(201);
    let link = owner.reset("/portal/sessions").await.success(201);
    let link = text(&link, "url").strip_prefix(&owner.gateway.daemon.base_url);
    Left {
        api_secret,
        send_key,
        pushable_key: owner.gateway.app.pushable_key.expose().to_owned(),
        link: link.unwrap().to_owned(),
    }
}

/// What still opens something, at any gateway.
async fn open(gateway: &Gateway, left: &Left) -> [bool; 3] {
    let me = anonymous(gateway, Method::GET, "/me")
        .header("x-api-secret", text(&left.api_secret, "api_secret"));
    let message = json!({
        "pk": left.pushable_key, "to": "bob@example.com", "subject": "x",
        "body": "x",
    });
    let send = anonymous(gateway, Method::POST, "/send")
        .header("x-send-key", text(&left.send_key, "send_key"))
        .json(&message);
    let link = Visitor::new(&gateway.daemon.base_url).get(&left.link).await;
    [
        Answer::to(me).await.status == 200,
        Answer::to(send).await.status != 401,
        link.status == 200,
    ]
}

async fn renew(gateway: &Gateway, query: &str) -> Value {
    let owner = Caller::owner(gateway).await;
    let reset = format!("/me/reset-api-secret{query}");
    owner.reset(&reset).await.success(200)["minted_since"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_created_with_the_old_secret_is_listed_and_ended_on_request() {
    let gateway = Gateway::start().await;
    let other = gateway.replica().start().await;
    let left = leave(&Caller::owner(&gateway).await).await;
    assert_eq!(open(&other, &left).await, [true; 3]);
    let wrong = Caller::owner(&gateway)
        .await
        .reset("/me/reset-api-secret?revoke=some")
        .await;
    assert_eq!(wrong.wrong_fields(), ["revoke"]);

    // Listed, and left alone but for what signs in.
    let minted = renew(&gateway, "").await;
    assert_eq!(
        (&minted["since"], &minted["revoked"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(minted["api_secrets"][0]["id"], left.api_secret["id"]);
    assert_eq!(minted["send_keys"][0]["id"], left.send_key["id"]);
    assert_eq!(
        (&minted["portal_links"], &minted["connect_sessions"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(open(&other, &left).await, [true, true, false]);

    // That renewal may have been the thief's: what is of before ends with the rest.
    gateway.clock.advance(TimeDelta::seconds(1));
    other.clock.advance(TimeDelta::seconds(1));
    let later = leave(&Caller::owner(&gateway).await).await;
    assert_eq!(open(&other, &later).await, [true; 3]);
    let minted = renew(&gateway, "?revoke=all").await;
    assert!(minted["since"].is_string(), "{minted}");
    assert_eq!(minted["revoked"], true);
    assert_eq!(minted["api_secrets"].as_array().unwrap().len(), 2);
    assert_eq!(minted["send_keys"].as_array().unwrap().len(), 2);
    assert_eq!(minted["connect_sessions"], 2);
    for left in [&left, &later] {
        assert_eq!(open(&other, left).await, [false; 3]);
    }
    let minted = renew(&gateway, "?revoke=all").await;
    assert_eq!(
        (&minted["api_secrets"], &minted["send_keys"]),
        (&json!([]), &json!([]))
    );
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_and_webhooks_since_the_renewal_before_are_listed_and_stay() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let hook = json!({ "url": "https://hooks.example.com/T1/secret", "events": ["email.sent"] });
    let own = owner.post(&format!("{app}/webhooks"), &hook).await;
    let own = own.success(201);
    owner.create("Own").await;
    gateway.clock.advance(TimeDelta::seconds(1));
    let minted = renew(&gateway, "").await;
    assert_eq!(
        (&minted["app_count"], &minted["webhook_count"]),
        (&json!(2), &json!(1))
    );
    let hosts = &minted["webhooks"][0];
    assert_eq!(
        (&hosts["id"], &hosts["host"]),
        (&own["id"], &json!("hooks.example.com"))
    );
    assert!(!minted.to_string().contains("/T1"), "{minted}");

    // What is of before the renewal is no news, but for what was changed since.
    gateway.clock.advance(TimeDelta::seconds(1));
    let minted = renew(&gateway, "").await;
    assert_eq!(
        (&minted["apps"], &minted["webhooks"]),
        (&json!([]), &json!([]))
    );
    gateway.clock.advance(TimeDelta::seconds(1));
    let owner = Caller::owner(&gateway).await;
    let left = owner.create("Left behind").await;
    let elsewhere = json!({ "url": "https://thief.example.net/" });
    let changed = format!("{app}/webhooks/{}", text(&own, "id"));
    owner.put(&changed, &elsewhere).await.success(200);
    let page = Visitor::signed_in(&gateway).await;
    let page = page.get("/portal/settings/api-secret/renew").await.text;
    for words in ["Left behind", "thief.example.net", text(&own, "id")] {
        assert!(page.contains(words), "{page}");
    }
    let minted = renew(&gateway, "?revoke=all").await;
    assert_eq!(minted["app_count"], 1);
    assert_eq!(minted["apps"][0]["app_slug"], left["app_id"]);
    assert_eq!(minted["webhooks"][0]["host"], "thief.example.net");
    let owner = Caller::owner(&gateway).await;
    let apps = owner.get("/apps").await.success(200);
    assert!(apps.to_string().contains("Left behind"), "{apps}");
    let kept = owner.get(&format!("{app}/webhooks")).await.success(200);
    assert!(kept.to_string().contains(text(&own, "id")), "{kept}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_portal_lists_it_and_ends_it_where_that_is_ticked() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let left = leave(&owner).await;
    let visitor = Visitor::signed_in(&gateway).await;
    let form = "/portal/settings/api-secret/renew";
    let page = visitor.get(form).await;
    for words in [
        "Left behind",
        text(&left.api_secret, "id"),
        text(&left.send_key, "id"),
    ] {
        assert!(page.text.contains(words), "{}", page.text);
    }
    let last = page.field("last");
    let fields = [
        ("api_secret", owner.secret.as_str()),
        ("last", &last),
        ("revoke", "all"),
    ];
    assert_eq!(visitor.post(form, &fields).await.status, 200);
    assert_eq!(open(&gateway, &left).await, [false; 3]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_is_told_by_mail() {
    // With the sandbox's relay.
    let gateway = Gateway::builder().billed().start().await;
    renew(&gateway, "").await;
    gateway
        .eventually("the mail", async |gateway| {
            !gateway.sandbox.inbox.list(1).is_empty()
        })
        .await;
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].envelope_to, ["owner@example.com"]);
    let raw = gateway
        .sandbox
        .inbox
        .raw(&arrived[0].id)
        .await
        .unwrap()
        .unwrap();
    let parsed = MessageParser::new().parse(&raw).unwrap();
    let subject = parsed.subject().unwrap();
    assert!(subject.starts_with("The API secret of "), "{subject}");
    let words = parsed.body_text(0).unwrap();
    assert!(words.contains("from 127.0.0.1"), "{words}");
    assert!(words.contains("If it wasn't you"), "{words}");
    gateway.stop().await;
}
