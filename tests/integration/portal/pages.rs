//! What the pages show: what was searched for, markup as text, and no secrets.

use std::collections::BTreeSet;

use serde_json::json;

use super::visitor::{Visitor, api_secret};
use crate::apps::session;
use crate::support::gateway::{Gateway, create_app};

/// All pages that are there for everybody.
const PAGES: [&str; 11] = [
    "/portal",
    "/portal/apps",
    "/portal/billing",
    "/portal/mailboxes",
    "/portal/messages",
    "/portal/settings",
    "/portal/settings/api-secret/renew",
    "/portal/settings/api-secrets/new",
    "/portal/sign-in",
    "/portal/webhooks",
    "/portal/webhooks/new",
];

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

#[tokio::test]
async fn markup_stays_text_and_secrets_stay_hidden() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let (status, sent) = gateway
        .send(json!({
            "to": "bob@example.com", "subject": MARKUP, "body": "x", "metadata": { "key": MARKUP }
        }))
        .await;
    assert_eq!(status, 200, "{sent}");
    let fields = [("label", MARKUP), ("email", "owner@example.com")];
    assert_eq!(visitor.post("/portal/settings", &fields).await.status, 303);
    let log_id = sent["log_id"].as_str().unwrap();
    let message = format!("/portal/messages/{log_id}");
    gateway
        .eventually("the message is in the log", async |_| {
            visitor.get(&message).await.status == 200
        })
        .await;
    let search = format!(
        "/portal/messages?subject={}",
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    );
    let wrong = "/portal/messages?to_address=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let all = PAGES.into_iter().chain([message.as_str(), &search, wrong]);
    for path in all {
        let page = visitor.get(path).await;
        assert!(matches!(page.status, 200 | 422), "{path}: {}", page.status);
        assert!(
            !page.text.contains("<script>alert"),
            "{path}: {}",
            page.text
        );
        assert!(!page.text.contains("<img"), "{path}: {}", page.text);
        for secret in ["sk_", "sek_", "whsec_", "whs_", "mgs_", "mgl_"] {
            assert!(!page.text.contains(secret), "{path}: {secret}");
        }
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
    }
    let shown = visitor.get(&search).await.text;
    assert!(shown.contains("&lt;script&gt;alert(1)"), "{shown}");
    let csv = visitor
        .get(&search.replace("messages?", "messages.csv?"))
        .await;
    assert!(
        csv.header("content-type").starts_with("text/csv"),
        "{csv:?}"
    );
    assert_eq!(csv.text.lines().count(), 2, "{}", csv.text);
    assert!(csv.text.contains(log_id));
    gateway.stop().await;
}

#[tokio::test]
async fn another_subscribers_addresses_are_nothing() {
    let gateway = Gateway::start().await;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let message = format!("/portal/messages/{}", sent["log_id"].as_str().unwrap());
    let owner = Visitor::signed_in(&gateway).await;
    gateway
        .eventually("the message is in the log", async |_| {
            owner.get(&message).await.status == 200
        })
        .await;
    let (_, app) = create_app(&gateway.daemon, "Other").await;
    let accounts = &gateway.daemon.accounts;
    let other = accounts.app_credentials(app.id).await.unwrap().unwrap();
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let page = visitor.sign_in(other.api_secret.expose()).await;
    assert_eq!(page.status, 303);
    assert_eq!(visitor.get(&message).await.status, 404);
    assert_eq!(visitor.get(&format!("{message}/cancel")).await.status, 404);
    for action in ["retry", "cancel"] {
        let page = visitor.post(&format!("{message}/{action}"), &[]).await;
        assert_eq!(page.status, 404, "{action}");
    }
    assert_eq!(visitor.get("/portal/nothing").await.status, 404);
    let none = visitor.get("/portal/messages").await.text;
    assert!(none.contains("No messages yet"), "{none}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_waiting_message_is_retried_and_cancelled() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let (_, sent) = gateway.send_to("tempfail@example.com").await;
    let message = format!("/portal/messages/{}", sent["log_id"].as_str().unwrap());
    let shows = async |words: &str| visitor.get(&message).await.text.contains(words);
    gateway
        .eventually("the next attempt is shown", async |_| {
            shows("Next attempt").await
        })
        .await;
    let page = visitor.post(&format!("{message}/retry"), &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    gateway
        .eventually("the second attempt is shown", async |_| {
            shows("Attempt 2").await
        })
        .await;
    let page = visitor.get(&format!("{message}/cancel")).await;
    assert!(page.text.contains("Cancel the message"), "{}", page.text);
    gateway
        .eventually("it can be cancelled", async |_| {
            visitor.post(&format!("{message}/cancel"), &[]).await.status == 303
        })
        .await;
    let page = visitor.get(&message).await;
    assert!(page.text.contains("Cancelled") && !page.text.contains("Retry now"));
    assert_eq!(
        visitor.post(&format!("{message}/retry"), &[]).await.status,
        409
    );
    let page = visitor.get(&format!("{message}/cancel")).await;
    assert_eq!(page.status, 409, "it has ended");
    gateway.stop().await;
}

#[tokio::test]
async fn a_scheduled_message_was_accepted_at_no_moment_to_come() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let later = chrono::Utc::now() + chrono::TimeDelta::days(20);
    let fields = json!({ "to": "bob@example.com", "subject": "s", "body": "b", "send_at": later.to_rfc3339() });
    let (_, sent) = gateway.send(fields).await;
    let message = format!("/portal/messages/{}", sent["log_id"].as_str().unwrap());
    let day = later.format("<time datetime=\"%Y-%m-%d").to_string();
    let page = visitor.get(&message).await.text;
    assert_eq!(page.matches(&day).count(), 1, "when it leaves: {page}");
    let (_, accepted) = page.split_once("Accepted by the gateway (REST)").unwrap();
    let (accepted, _) = accepted.split_once("</li>").unwrap();
    assert!(!accepted.contains("<time"), "{accepted}");
    let page = visitor.post(&format!("{message}/cancel"), &[]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let page = visitor.get(&message).await.text;
    assert!(page.contains("<strong>Cancelled</strong>"), "{page}");
    assert!(!page.contains("Failed") && !page.contains(&day), "{page}");
    let list = visitor.get("/portal/messages").await.text;
    assert!(list.contains(">Cancelled<"), "{list}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_timeline_says_by_which_interface_its_message_was_submitted() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let later = (chrono::Utc::now() + chrono::TimeDelta::hours(1)).to_rfc3339();
    let scheduled =
        json!({ "to": "bob@example.com", "subject": "s", "body": "b", "send_at": later });
    let sent = gateway.send_to("bob@example.com").await.1;
    let waiting = gateway.send_to("tempfail@example.com").await.1;
    let (_, scheduled) = gateway.send(scheduled).await;
    let mut client = session(&gateway, &gateway.app.slug, gateway.app.send_key.expose()).await;
    let content = b"From: ada@sandbox.example\r\n\r\nb\r\n";
    let reply = client.submit("carol@example.com", content).await;
    let by_smtp = reply.split(' ').find(|word| word.starts_with("log_"));
    for (id, door) in [
        (sent["log_id"].as_str(), "REST"),
        (waiting["log_id"].as_str(), "REST"),
        (scheduled["log_id"].as_str(), "REST"),
        (by_smtp, "SMTP"),
    ] {
        let page = visitor
            .get(&format!("/portal/messages/{}", id.unwrap()))
            .await;
        let words = format!("Accepted by the gateway ({door})");
        assert!(page.text.contains(&words), "{words}: {}", page.text);
    }
    gateway.stop().await;
}

#[tokio::test]
async fn assets_are_kept_for_ever_by_their_content() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    let page = visitor.get("/portal/sign-in").await;
    let inside = Visitor::signed_in(&gateway).await.get("/portal").await;
    let paths: BTreeSet<&str> = (inside.text.split(['"', '#']))
        .filter(|text| text.starts_with("/portal/assets/"))
        .collect();
    assert_eq!(paths.len(), 4, "{}", inside.text);
    let mut bytes = page.text.len();
    for path in paths {
        let asset = visitor.get(path).await;
        assert_eq!(asset.status, 200, "{path}");
        assert!(asset.header("cache-control").contains("immutable"));
        bytes += asset.text.len();
    }
    assert!(bytes < 150_000, "{bytes}");
    assert_eq!(visitor.get("/portal/assets/portal.0.css").await.status, 404);
    gateway.stop().await;
}

#[tokio::test]
async fn a_wrong_form_says_what_is_wrong_and_changes_nothing() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let fields = [("label", " "), ("email", "nobody")];
    let page = visitor.post("/portal/settings", &fields).await;
    assert_eq!(page.status, 422);
    for words in ["Enter a name.", "Enter one email address."] {
        assert!(page.text.contains(words), "{}", page.text);
    }
    let page = visitor.post("/portal/settings", &[]).await;
    assert_eq!(page.status, 400);
    assert!(!api_secret(&gateway).await.is_empty());
    gateway.stop().await;
}
