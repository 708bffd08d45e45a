//! The pages of webhooks: added, tried, paused, replayed, and gone.

use serde_json::json;

use super::visitor::{Visitor, api_secret};
use crate::support::gateway::{Gateway, create_app};
use crate::support::receiver::{Received, Receiver, Reply};

const MARKUP: &str = "<script>alert(1)</script><img src=x>";

const EVENTS: [(&str, &str); 2] = [("events", "email.sent"), ("events", "email.failed_perm")];

/// Receivers may be on this machine.
pub async fn gateway() -> Gateway {
    Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await
}

/// Adds a webhook of the demo app, and returns its path.
pub async fn add(gateway: &Gateway, visitor: &Visitor, url: &str) -> String {
    let key = gateway.app.pushable_key.expose();
    let fields = [("app", key), ("url", url), EVENTS[0], EVENTS[1]];
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    assert_eq!(page.status, 201, "{}", page.text);
    assert!(page.text.contains("whsec_"), "shown this once");
    let (_, path) = page.text.split_once("href=\"/portal/webhooks/").unwrap();
    let (id, _) = path.split_once('"').unwrap();
    format!("/portal/webhooks/{id}")
}

/// The webhook-ids of what came.
fn webhook_ids(received: &[Received]) -> Vec<&str> {
    let ids = received.iter().map(|it| it.header("webhook-id"));
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_was_down_gets_its_event_again() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let empty = visitor.get("/portal/webhooks").await;
    assert!(empty.text.contains("No webhooks yet"), "{}", empty.text);
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    receiver.then([Reply::Status(500, MARKUP), Reply::Status(204, "")]);
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("the failed attempt is listed", async |_| {
            visitor.get(&hook).await.text.contains("/deliveries/")
        })
        .await;
    let page = visitor.get(&hook).await.text;
    assert!(
        page.contains("0%") && page.contains("1 attempts") || page.contains("1 attempt"),
        "{page}"
    );
    let (_, id) = page.split_once("/deliveries/").unwrap();
    let delivery = format!("{hook}/deliveries/{}", id.split('"').next().unwrap());
    let page = visitor.get(&delivery).await.text;
    for words in [
        "email.sent",
        "500",
        "&lt;script&gt;",
        "&quot;event&quot;",
        "Attempt 1",
    ] {
        assert!(
            page.contains(words) || page.contains(&words.replace("&quot;", "&#34;")),
            "{words}: {page}"
        );
    }
    assert!(
        !page.contains("<script>alert") && !page.contains("<img"),
        "{page}"
    );

    let page = visitor.post(&format!("{delivery}/replay"), &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get(page.location()).await;
    assert!(page.text.contains("Queued as attempt 2"), "{}", page.text);
    gateway
        .eventually("attempt 2", async |_| {
            visitor.get(&delivery).await.text.contains("Attempt 2")
        })
        .await;
    let events = receiver.received();
    assert_eq!(events.len(), 2);
    let ids = webhook_ids(&events);
    assert_eq!(ids[0], ids[1]);
    let all = visitor.get("/portal/webhooks").await.text;
    assert!(all.contains("50%"), "{all}");
    let failed = visitor.get(&format!("{hook}?success=false")).await.text;
    assert_eq!(failed.matches("/deliveries/").count(), 1, "{failed}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_tried_changed_paused_and_deleted() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    let page = visitor.post(&format!("{hook}/test"), &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get(page.location()).await;
    assert!(
        page.text.contains("The test event was accepted"),
        "{}",
        page.text
    );
    assert_eq!(receiver.count(), 1);

    let url = receiver.url("/elsewhere");
    let change = [("url", url.as_str()), EVENTS[0]];
    assert_eq!(
        visitor.post(&format!("{hook}/edit"), &change).await.status,
        303
    );
    let wrong = [("url", "ftp://x"), ("events", "nothing")];
    let page = visitor.post(&format!("{hook}/edit"), &wrong).await;
    assert_eq!(page.status, 422);
    for words in ["The URL", "Choose at least one event."] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }

    assert_eq!(
        visitor.post(&format!("{hook}/pause"), &[]).await.status,
        303
    );
    assert!(visitor.get(&hook).await.text.contains("Paused"));
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    assert_eq!(
        visitor.post(&format!("{hook}/resume"), &[]).await.status,
        303
    );
    assert_eq!(gateway.send_to("eve@example.com").await.0, 200);
    gateway
        .eventually("what was sent after the pause", async |_| {
            receiver.count() == 2
        })
        .await;
    assert_eq!(receiver.received()[1].path, "/elsewhere");

    // The secret: asked for, shown once, and both sign for a day.
    let page = visitor.post(&format!("{hook}/secret"), &[]).await;
    assert_eq!(page.status, 403, "{}", page.text);
    let secret = api_secret(&gateway).await;
    let proof = [("api_secret", secret.as_str())];
    let page = visitor.post(&format!("{hook}/secret"), &proof).await;
    assert!(
        page.text.contains("whsec_") && page.text.contains("both secrets"),
        "{}",
        page.text
    );
    assert!(
        visitor
            .get(&hook)
            .await
            .text
            .contains("The previous one also signs")
    );

    let today = chrono::Utc::now().format("%Y-%m-%d").to_string();
    let days = [("since", today.as_str()), ("success", "true")];
    let page = visitor.post(&format!("{hook}/replay"), &days).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get(page.location()).await;
    assert!(
        page.text.contains("of 1 event") || page.text.contains("The event was sent again."),
        "{}",
        page.text
    );

    let page = visitor.get(&format!("{hook}/delete")).await;
    assert_eq!(page.status, 200);
    assert_eq!(
        visitor.post(&format!("{hook}/delete"), &[]).await.status,
        303
    );
    assert_eq!(visitor.get(&hook).await.status, 404);
    let actions: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT action FROM audit_entries WHERE action LIKE 'webhook%' ORDER BY action",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    assert!(actions.len() >= 4, "{actions:?}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apps_own_address_is_a_webhook_too() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let change = json!({ "webhook_url": receiver.url("/own") });
    let response = gateway
        .http
        .put(format!(
            "{}/apps/{}",
            gateway.daemon.base_url,
            gateway.app.pushable_key.expose()
        ))
        .header("x-api-secret", api_secret(&gateway).await)
        .json(&change)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("its delivery", async |_| receiver.count() == 1)
        .await;
    let all = visitor.get("/portal/webhooks").await.text;
    assert!(all.contains("/own"), "{all}");
    let (_, path) = all.split_once("<a class=\"row\" href=\"").unwrap();
    let hook = path.split('"').next().unwrap();
    let page = visitor.get(hook).await;
    assert!(
        page.text.contains("Edit in the app's settings"),
        "{}",
        page.text
    );
    for action in ["test", "pause", "delete"] {
        assert_eq!(
            visitor.post(&format!("{hook}/{action}"), &[]).await.status,
            404
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_subscribers_webhook_is_nothing() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    let (_, app) = create_app(&gateway.daemon, "Other").await;
    let other = gateway.daemon.accounts.app_credentials(app.id).await;
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    let page = stranger
        .sign_in(other.unwrap().unwrap().api_secret.expose())
        .await;
    assert_eq!(page.status, 303);
    for path in ["", "/edit", "/secret", "/replay", "/delete"] {
        assert_eq!(
            stranger.get(&format!("{hook}{path}")).await.status,
            404,
            "{path}"
        );
    }
    for path in [
        "/test", "/pause", "/resume", "/delete", "/secret", "/replay", "/edit",
    ] {
        let fields = [
            ("url", "https://a.example"),
            EVENTS[0],
            ("since", "2026-01-01"),
        ];
        let page = stranger.post(&format!("{hook}{path}"), &fields).await;
        assert_eq!(page.status, 404, "{path}");
    }
    let key = gateway.app.pushable_key.expose();
    let fields = [("app", key), ("url", "https://a.example/x"), EVENTS[0]];
    let page = stranger.post("/portal/webhooks/new", &fields).await;
    assert_eq!(page.status, 422, "another's app: {}", page.text);
    gateway.stop().await;
}
