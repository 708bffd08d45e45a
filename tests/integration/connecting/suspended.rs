//! Apps whose subscriber the operator has suspended, or deleted, connect nothing, by links of before neither.

use serde_json::json;
use sqlx::{Connection as _, Executor as _};

use super::{Visit, active, complete, execute, link, session, until_callback};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::lock_waits::until_waiting;

const SUSPEND: &str = "UPDATE subscribers SET suspended_at = now(), suspension_reason = 'Spam'";
const DELETE: &str = "UPDATE subscribers SET deletion_due_at = now() + interval '7 days'";
const OTHER: &str = "other@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn links_of_before_connect_nothing() {
    let gateway = Gateway::start().await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", OTHER)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let token = session(&gateway, &gateway.app, json!({ "plugin": "plugin_b" })).await;
    let personal = link(&gateway, &gateway.app, &[("session", &token)]);
    let bare = link(&gateway, &gateway.app, &parameters);
    execute(&gateway, SUSPEND).await;
    for link in [&personal, &bare] {
        for language in ["en", "de", "fr", "es", "ja"] {
            let page = Visit::to(format!("{link}&lang={language}")).await;
            page.is_failure(403, "app_suspended");
            assert!(!page.body.contains("Spam"), "{}", page.body);
        }
        Visit::press(link.clone())
            .await
            .is_failure(403, "app_suspended");
    }
    // Who is at the provider already comes back in vain.
    complete(callback).await.is_failure(400, "app_suspended");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    execute(
        &gateway,
        "UPDATE subscribers SET suspended_at = NULL, suspension_reason = NULL",
    )
    .await;
    assert_eq!(Visit::to(personal).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_deleted_account_lead_nowhere_until_it_is_restored() {
    let gateway = Gateway::start().await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", OTHER)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let token = session(&gateway, &gateway.app, json!({ "plugin": "plugin_b" })).await;
    let personal = link(&gateway, &gateway.app, &[("session", &token)]);
    execute(&gateway, DELETE).await;
    let page = Visit::to(personal.clone()).await;
    page.is_failure(404, "link_not_found");
    let page = Visit::press(personal.clone()).await;
    page.is_failure(404, "link_not_found");
    complete(callback).await.is_failure(410, "link_expired");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    execute(&gateway, "UPDATE subscribers SET deletion_due_at = NULL").await;
    assert_eq!(Visit::to(personal).await.status, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_or_deletion_under_way_is_waited_for() {
    waits_for(SUSPEND).await;
    waits_for(DELETE).await;
}

async fn waits_for(change: &'static str) {
    let gateway = Gateway::start().await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", OTHER)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    // As `suspend` does it: the row first.
    let mut connection = gateway.database().await;
    let mut suspending = connection.begin().await.unwrap();
    for statement in ["SELECT FROM subscribers FOR UPDATE", change] {
        suspending.execute(statement).await.unwrap();
    }
    let came_back = tokio::spawn(complete(callback));
    until_waiting(&gateway, "FOR KEY SHARE OF subscribers", 1).await;
    suspending.commit().await.unwrap();
    let page = came_back.await.unwrap();
    page.is_failure(400, "app_suspended");
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    gateway.stop().await;
}
