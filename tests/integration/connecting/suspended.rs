//! Apps whose subscriber the operator has suspended connect nothing, by links of before neither.

use serde_json::json;

use super::{Visit, active, complete, execute, link, session, until_callback};
use crate::support::gateway::{Gateway, MAILBOX};

const SUSPEND: &str = "UPDATE subscribers SET suspended_at = now(), suspension_reason = 'Spam'";
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
