//! The pages of webhooks: added, tested, paused, rotated, deleted; their deliveries; a form that is sent again.

use reqwest::Method;

use super::visitor::{Page, Visitor, answer, api_secret};
use crate::support::gateway::{Gateway, create_app};
use crate::support::receiver::{Receiver, Reply};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

async fn start() -> Gateway {
    let builder = Gateway::builder().set("WEBHOOKS__ALLOW_PRIVATE", true);
    builder.start().await
}

fn hides_all(page: &Page) {
    for wrong in ["<script>alert", "<img", "sk_", "sek_", "whsec_", "whs_"] {
        assert!(!page.text.contains(wrong), "{wrong}: {}", page.text);
    }
}

/// The path of the webhook that a page leads to.
fn linked(page: &Page) -> String {
    let rest = page.text.split("/portal/webhooks/wconf_").nth(1).unwrap();
    let id: String = rest
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    format!("/portal/webhooks/wconf_{id}")
}

/// A hidden field of a form.
fn hidden(page: &Page, name: &str) -> String {
    let rest = page.text.split(&format!("name=\"{name}\" value=\"")).nth(1);
    rest.unwrap().split('"').next().unwrap().to_owned()
}

async fn add(visitor: &Visitor, gateway: &Gateway, url: &str) -> String {
    let fields = [
        ("app", gateway.app.pushable_key.expose()),
        ("url", url),
        ("events", "email.sent"),
    ];
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    assert_eq!(page.status, 201, "{}", page.text);
    linked(&page)
}

async fn count(gateway: &Gateway) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM webhook_configs")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_form_that_is_sent_again_changes_nothing() {
    let gateway = start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let form = visitor.get("/portal/webhooks/new").await;
    let (made, url) = (hidden(&form, "made"), receiver.url("/"));
    let fields = [
        ("app", gateway.app.pushable_key.expose()),
        ("url", &url),
        ("events", "email.sent"),
        ("made", &made),
    ];
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    assert_eq!(page.status, 201, "{}", page.text);
    assert!(page.text.contains("whsec_"), "{}", page.text);
    let hook = linked(&page);
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    let before = format!("{hook}?done=added-before");
    assert_eq!((page.status, page.location()), (303, before.as_str()));
    assert_eq!(count(&gateway).await, 1);
    let page = visitor.get(&before).await;
    hides_all(&page);
    assert!(page.text.contains("was already added"), "{}", page.text);

    let rotate = format!("{hook}/secret");
    let (last, secret) = (
        hidden(&visitor.get(&rotate).await, "last"),
        api_secret(&gateway).await,
    );
    let fields = [("api_secret", secret.as_str()), ("last", &last)];
    let page = visitor.post(&rotate, &fields).await;
    assert!(
        page.status == 200 && page.text.contains("whsec_"),
        "{}",
        page.text
    );
    let page = visitor.post(&rotate, &fields).await;
    assert_eq!(page.location(), format!("{hook}?done=rotated-before"));
    gateway.stop().await;
}

#[tokio::test]
async fn a_webhook_is_tested_paused_changed_and_deleted() {
    let gateway = start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let page = visitor.get("/portal/webhooks").await;
    assert!(page.text.contains("No webhooks yet"), "{}", page.text);
    let wrong = [("app", "x"), ("url", MARKUP)];
    let page = visitor.post("/portal/webhooks/new", &wrong).await;
    assert_eq!(page.status, 422);
    hides_all(&page);
    let receiver = Receiver::start().await;
    let hook = add(&visitor, &gateway, &receiver.url("/")).await;
    receiver.always(Reply::Status(500, MARKUP));
    let page = visitor.post(&format!("{hook}/test"), &[]).await;
    assert_eq!(page.location(), format!("{hook}?done=test-failed"));
    let page = visitor.get(page.location()).await;
    hides_all(&page);
    page.says(&["Test failed: your endpoint answered 500."]);
    assert!(
        page.text.contains("500") && page.text.contains("1 attempt."),
        "{}",
        page.text
    );
    let delivery = page
        .text
        .split(&format!("{hook}/deliveries/"))
        .nth(1)
        .unwrap();
    let delivery = delivery.split('"').next().unwrap();
    let page = visitor.get(&format!("{hook}/deliveries/{delivery}")).await;
    assert_eq!(page.status, 200);
    hides_all(&page);
    assert!(page.text.contains("alert(1)"), "{}", page.text);
    for (action, word) in [("pause", "Paused"), ("resume", "Active")] {
        let page = visitor.post(&format!("{hook}/{action}"), &[]).await;
        let page = visitor.get(page.location()).await;
        assert!(page.text.contains(word), "{}", page.text);
    }
    let fields = [("url", "https://app.example/new"), ("events", "email.sent")];
    let page = visitor.post(&format!("{hook}/edit"), &fields).await;
    assert_eq!(page.location(), format!("{hook}?done=saved"));
    assert!(
        visitor
            .get(&hook)
            .await
            .text
            .contains("https://app.example/new")
    );

    let (_, app) = create_app(&gateway.daemon, "Other").await;
    let accounts = &gateway.daemon.accounts;
    let other = accounts.app_credentials(app.id).await.unwrap().unwrap();
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(
        stranger.sign_in(other.api_secret.expose()).await.status,
        303
    );
    for part in ["", "/edit", "/delete", "/secret", "/replay"] {
        assert_eq!(
            stranger.get(&format!("{hook}{part}")).await.status,
            404,
            "{part}"
        );
        let page = visitor.get(&format!("{hook}{part}")).await;
        assert_eq!(page.status, 200, "{part}");
        hides_all(&page);
    }
    for part in [
        "test", "pause", "resume", "edit", "delete", "secret", "replay",
    ] {
        let path = format!("{hook}/{part}");
        assert_eq!(stranger.post(&path, &fields).await.status, 404, "{part}");
        let request = visitor.request(Method::POST, &path).form(&fields);
        let page = answer(request.header("origin", "https://evil.example")).await;
        assert_eq!(page.status, 403, "{part}");
    }
    let page = visitor.post(&format!("{hook}/delete"), &[]).await;
    assert_eq!(page.location(), "/portal/webhooks?done=deleted");
    assert_eq!(visitor.get(&hook).await.status, 404);
    let actions: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM audit_entries WHERE address = '127.0.0.1' AND action LIKE 'webhook.%' ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    assert_eq!(actions.len(), 6, "{actions:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn deliveries_to_an_emptied_url_stay_reachable() {
    let gateway = start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = format!("/portal/webhooks/{}", gateway.app.id);
    assert_eq!(visitor.get(&hook).await.status, 404);
    let options = format!("/portal/apps/{}/options", gateway.app.slug);
    let url = receiver.url("/");
    let fields = [("name", "Demo"), ("webhook_url", url.as_str())];
    assert_eq!(visitor.post(&options, &fields).await.status, 303);
    gateway.send_to("bob@example.com").await;
    gateway
        .eventually("it is delivered", async |_| {
            let page = visitor.get(&hook).await;
            page.text.contains("Delivered</") && page.text.contains("100%")
        })
        .await;
    let fields = [("name", "Demo"), ("webhook_url", "")];
    assert_eq!(visitor.post(&options, &fields).await.status, 303);
    let page = visitor.get(&hook).await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.contains("No URL") && page.text.contains("/deliveries/"),
        "{}",
        page.text
    );
    gateway.stop().await;
}
