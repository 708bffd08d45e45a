//! The pages of apps: made, seen, changed, deleted; keys hidden until they are asked for.

use mailgate_domain::accounts::AppFields;
use mailgate_types::clock::Clock;
use reqwest::Method;
use serde_json::{Value, json};

use super::visitor::{Page, Visitor, answer, api_secret};
use crate::support::caller::{Caller, path};
use crate::support::gateway::{Gateway, OPERATOR, create_app};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

const SECRETS: [&str; 6] = ["sk_", "sek_", "whsec_", "whs_", "mgs_", "mgl_"];

fn hides_all(page: &Page) {
    for secret in SECRETS {
        assert!(!page.text.contains(secret), "{secret}: {}", page.text);
    }
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    assert!(!page.text.contains("<img"), "{}", page.text);
}

/// What the trail says of the subscriber's last change.
async fn last_entry(gateway: &Gateway) -> (String, String, Option<String>) {
    sqlx::query_as("SELECT action, actor, address FROM audit_entries ORDER BY id DESC LIMIT 1")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

async fn leaves(gateway: &Gateway, action: &str) {
    let expected = ("subscriber".to_owned(), Some("127.0.0.1".to_owned()));
    let (written, actor, address) = last_entry(gateway).await;
    assert_eq!((written.as_str(), (actor, address)), (action, expected));
}

#[tokio::test]
async fn an_app_is_created_changed_and_deleted() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let wrong = [("name", " "), ("webhook_url", "nowhere")];
    let page = visitor.post("/portal/apps", &wrong).await;
    assert_eq!(page.status, 422);
    for words in ["Enter a name.", "nowhere", "aria-invalid"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let fields = [("name", MARKUP), ("multiuser", "true")];
    let page = visitor.post("/portal/apps", &fields).await;
    assert_eq!(page.status, 303, "{}", page.text);
    leaves(&gateway, "app.created").await;
    let app = page.location().split('?').next().unwrap().to_owned();
    for address in [page.location(), "/portal/apps", &format!("{app}/delete")] {
        let page = visitor.get(address).await;
        assert_eq!(page.status, 200, "{address}");
        hides_all(&page);
        assert!(page.text.contains("&lt;script&gt;"), "{address}");
    }

    let options = format!("{app}/options");
    let wrong = [("name", ""), ("logo_url", "ftp://x")];
    assert_eq!(visitor.post(&options, &wrong).await.status, 422);
    let fields = [
        ("name", "Shop"),
        ("multiuser", "true"),
        ("suppress_bounced", "true"),
    ];
    let page = visitor.post(&options, &fields).await;
    assert_eq!(
        (page.status, page.location()),
        (303, format!("{app}?done=saved").as_str())
    );
    leaves(&gateway, "app.changed").await;
    let slug = app.rsplit('/').next().unwrap();
    let (name, bounced, sessions): (String, bool, bool) = sqlx::query_as(
        "SELECT name, suppress_bounced, require_connect_session FROM apps WHERE slug = $1",
    )
    .bind(slug)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!((name.as_str(), bounced, sessions), ("Shop", true, false));

    let page = visitor
        .post(&format!("{app}/delete"), &[("name", "shop")])
        .await;
    assert_eq!(page.status, 422);
    assert_eq!(visitor.get(&app).await.status, 200, "nothing was deleted");
    let page = visitor
        .post(&format!("{app}/delete"), &[("name", "Shop")])
        .await;
    assert_eq!(page.location(), "/portal/apps?done=app-deleted");
    leaves(&gateway, "app.deleted").await;
    assert_eq!(visitor.get(&app).await.status, 404);
    gateway.stop().await;
}

#[tokio::test]
async fn an_app_is_at_its_slug_its_uuid_and_its_pushable_key() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let key = gateway.app.pushable_key.expose().to_owned();
    for name in [
        gateway.app.slug.clone(),
        gateway.app.id.to_string(),
        key.clone(),
    ] {
        let page = visitor.get(&format!("/portal/apps/{name}")).await;
        assert_eq!(page.status, 200, "{name}");
        hides_all(&page);
        // curl, five programs, and the link's form; SMTP's user name.
        assert!(page.text.matches(&key).count() >= 6, "{}", page.text);
        for words in ["YOUR_SEND_KEY", "Python", "Ruby", "SMTP", "Create link"] {
            assert!(page.text.contains(words), "{words}");
        }
    }
    for none in [
        "nothing",
        "pk_x",
        "%00",
        "00000000-0000-0000-0000-000000000000",
    ] {
        let page = visitor.get(&format!("/portal/apps/{none}")).await;
        assert_eq!(page.status, 404, "{none}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn keys_are_revealed_and_renewed_by_the_api_secret() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal/apps/{}", gateway.app.slug);
    let accounts = &gateway.daemon.accounts;
    let send_key = async || {
        let key = accounts.send_key(gateway.app.id).await.unwrap().unwrap();
        key.expose().to_owned()
    };
    let secret = api_secret(&gateway).await;
    let proof = [("api_secret", secret.as_str())];
    for (action, key) in [
        ("reveal", "send-key"),
        ("reveal", "webhook-secret"),
        ("renew", "send-key"),
        ("renew", "webhook-secret"),
    ] {
        let address = format!("{app}/{action}/{key}");
        let page = visitor.post(&address, &[("api_secret", "x")]).await;
        assert_eq!(page.status, 403, "{address}");
        hides_all(&page);
    }
    let before = send_key().await;
    let page = visitor
        .post(&format!("{app}/reveal/send-key"), &proof)
        .await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.matches(&before).count() >= 7,
        "the programs have it"
    );
    assert!(!page.text.contains("whs_") && !page.text.contains(&secret));
    assert_eq!(page.header("cache-control"), "no-store");
    leaves(&gateway, "send_key.revealed").await;
    let page = visitor
        .post(&format!("{app}/reveal/webhook-secret"), &proof)
        .await;
    assert!(page.text.contains("whs_"), "{}", page.text);
    leaves(&gateway, "webhook_secret.revealed").await;

    for key in ["send-key", "webhook-secret", "pushable-key"] {
        let page = visitor.get(&format!("{app}/renew/{key}")).await;
        assert_eq!(page.status, 200);
        hides_all(&page);
    }
    let renew = async |key: &str| {
        let address = format!("{app}/renew/{key}");
        let last = visitor.get(&address).await.field("last");
        let fields = [("api_secret", secret.as_str()), ("last", &last)];
        visitor.post(&address, &fields).await
    };
    let page = renew("send-key").await;
    leaves(&gateway, "send_key.renewed").await;
    let after = send_key().await;
    assert!(after != before && page.text.contains(&after));
    let page = renew("webhook-secret").await;
    leaves(&gateway, "webhook_secret.renewed").await;
    assert!(page.text.contains("whs_") && page.text.contains("signed with the previous secret"));
    let page = renew("pushable-key").await;
    assert_eq!(page.location(), format!("{app}?done=key-renewed"));
    leaves(&gateway, "pushable_key.renewed").await;
    let page = visitor.get(page.location()).await;
    hides_all(&page);
    assert!(!page.text.contains(gateway.app.pushable_key.expose()));
    assert_eq!(
        visitor.get(&format!("{app}/renew/nothing")).await.status,
        404
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_link_connects_a_mailbox() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let address = format!("/portal/apps/{}/link", gateway.app.slug);
    let wrong = [("plugin", "plugin_x"), ("expected_email", MARKUP)];
    let page = visitor.post(&address, &wrong).await;
    assert_eq!(page.status, 422);
    hides_all(&page);
    for kind in ["session", "open"] {
        let fields = [
            ("kind", kind),
            ("plugin", "plugin_a"),
            ("user_id", "a b&c"),
            ("expected_email", "ada@sandbox.example"),
        ];
        let page = visitor.post(&address, &fields).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains("<svg class=\"qr\""), "{}", page.text);
        let link = page.text.split("id=\"connect-link\"").nth(1).unwrap();
        let link = link.split("value=\"").nth(1).unwrap();
        let link = link.split('"').next().unwrap();
        let link = link.replace("&amp;", "&").replace("&#38;", "&");
        assert_eq!(link.contains("?session="), kind == "session", "{link}");
        let opened = gateway.http.get(&link).send().await.unwrap();
        assert_eq!(opened.status(), 200, "{link}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn refusals_and_suppressions_are_shown() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal/apps/{}", gateway.app.slug);
    let page = visitor.get(&app).await;
    for words in ["No rejected requests", "No hard bounces"] {
        assert!(page.text.contains(words), "{}", page.text);
    }
    sqlx::query("INSERT INTO suppressions (app_id, address, log_id, bounced_at) VALUES ($1, 'bob@example.com', $2, $3)")
        .bind(gateway.app.id.0)
        .bind(gateway.app.id.0)
        .bind(gateway.clock.now())
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let unknown =
        json!({ "to": "bob@example.com", "from": "who@example.com", "subject": "x", "body": "x" });
    assert_eq!(gateway.send(unknown).await.0, 422);
    gateway
        .eventually("the refusal is shown", async |_| {
            let page = visitor.get(&app).await;
            page.text.contains("No connected mailbox matches")
        })
        .await;
    assert!(visitor.get(&app).await.text.contains("bob@example.com"));
    let fields = [("to_address", "bob@example.com")];
    let page = visitor.post(&format!("{app}/unsuppress"), &fields).await;
    assert_eq!(page.location(), format!("{app}?done=unsuppressed"));
    leaves(&gateway, "suppressions.deleted").await;
    let list = Caller::owner(&gateway).await;
    let list: Value = list
        .get(&format!("{}/suppressions", path(&gateway.app)))
        .await
        .success(200);
    assert_eq!(list["total"], 0);
    gateway.stop().await;
}

#[tokio::test]
async fn anothers_app_is_nothing_and_other_sites_change_none() {
    let gateway = Gateway::start().await;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let visitor = Visitor::signed_in(&gateway).await;
    let posts = [
        "reveal/send-key",
        "renew/send-key",
        "renew/pushable-key",
        "link",
        "options",
        "unsuppress",
        "delete",
    ];
    let fields = [("name", "Other"), ("to_address", "bob@example.com")];
    for name in [
        &other.slug,
        &other.id.to_string(),
        other.pushable_key.expose(),
    ] {
        let app = format!("/portal/apps/{name}");
        for part in ["", "/renew/send-key", "/delete"] {
            assert_eq!(
                visitor.get(&format!("{app}{part}")).await.status,
                404,
                "{part}"
            );
        }
        for part in posts {
            let page = visitor.post(&format!("{app}/{part}"), &fields).await;
            assert_eq!(page.status, 404, "{part}");
        }
    }
    let own = format!("/portal/apps/{}", gateway.app.slug);
    let own = posts.map(|part| format!("{own}/{part}"));
    let billing = ["card", "visit", "pay", "cancel"].map(|part| format!("/portal/billing/{part}"));
    let create = "/portal/apps".to_owned();
    for address in own.iter().chain(&billing).chain([&create]) {
        let request = visitor.request(Method::POST, address).form(&fields);
        let page = answer(request.header("origin", "https://evil.example")).await;
        assert_eq!(page.status, 403, "{address}");
    }
    assert_eq!(visitor.get("/portal/apps").await.status, 200);
    gateway.stop().await;
}

#[tokio::test]
async fn without_an_app_the_page_offers_the_first() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let (app, fields) = (
        format!("/portal/apps/{}", gateway.app.slug),
        [("name", "Demo")],
    );
    let page = visitor.post(&format!("{app}/delete"), &fields).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get("/portal/apps").await;
    assert!(page.text.contains("Create your first app"), "{}", page.text);
    let page = visitor.get("/portal").await;
    assert!(page.text.contains("Get started"), "{}", page.text);
    gateway.stop().await;
}

/// The mark in a form that renews a key.
fn mark(page: &Page) -> String {
    let (_, rest) = (page.text)
        .split_once("name=\"last\" value=\"")
        .unwrap_or_else(|| panic!("{}", page.text));
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_form_that_is_sent_again_renews_nothing() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal/apps/{}", gateway.app.slug);
    let secret = api_secret(&gateway).await;
    let stored = async || {
        sqlx::query_as::<_, (Vec<u8>, Vec<u8>, String)>(
            "SELECT send_key_sealed, webhook_secret_sealed, pushable_key FROM apps WHERE id = $1",
        )
        .bind(gateway.app.id.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    for key in ["send-key", "webhook-secret", "pushable-key"] {
        let form = format!("{app}/renew/{key}");
        let last = mark(&visitor.get(&form).await);
        let fields = [("api_secret", secret.as_str()), ("last", last.as_str())];
        let before = stored().await;
        let page = visitor.post(&form, &fields).await;
        assert!(matches!(page.status, 200 | 303), "{key}: {}", page.text);
        let after = stored().await;
        assert_ne!(after, before, "{key}");
        let page = visitor.post(&form, &fields).await;
        assert_eq!(
            (page.status, page.location()),
            (303, format!("{app}?done=renewed-before").as_str()),
            "{key}"
        );
        assert_eq!(stored().await, after, "{key}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn an_app_beyond_the_switchers_can_be_chosen() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let mut last = None;
    for number in 1..=101 {
        gateway.clock.advance(chrono::TimeDelta::milliseconds(10));
        let fields = AppFields::named(&format!("App {number}"));
        let accounts = &gateway.daemon.accounts;
        let created = accounts.create_own_app(gateway.subscriber, &fields, OPERATOR);
        last = Some(created.await.unwrap());
    }
    let last = last.unwrap();
    let page = visitor
        .get(&format!("/portal/webhooks/new?app={}", last.slug))
        .await;
    let option = format!("value=\"{}\" selected", last.pushable_key.expose());
    assert!(page.text.contains(&option), "{}", page.text);
    let page = visitor
        .get(&format!("/portal/messages?app={}", last.slug))
        .await;
    assert!(page.text.contains("<summary>App 101 "));
    let scope = format!("name=\"app\" value=\"{}\"", last.slug);
    assert!(page.text.contains(&scope), "{}", page.text);
    // Of one that is no app of theirs no other is chosen in its place.
    let page = visitor.get("/portal/webhooks/new?app=nobodys").await;
    assert!(page.text.contains("value=\"\" selected>Choose an app"));
    let page = visitor.get("/portal/messages?app=nobodys").await;
    assert!(page.text.contains("<summary>Unknown app "));
    assert!(page.text.contains("name=\"app\" value=\"nobodys\""));
    for path in ["mailboxes", "webhooks", "messages", "webhooks/new"] {
        let page = visitor.get(&format!("/portal/{path}?app=%00")).await;
        assert!(matches!(page.status, 400 | 404 | 422), "{path}: {page:?}");
    }
    let fields = [("app", "\0"), ("url", "https://a.example"), ("events", "x")];
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    assert_eq!(page.status, 422, "{}", page.text);
    gateway.stop().await;
}
