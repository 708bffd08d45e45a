//! The operations of an app and its webhooks.

use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{HOOK, Matrix, get, post};
use crate::support::caller::{Caller, text};

/// A further app with its webhooks, until it is deleted.
pub(super) async fn with_an_app(matrix: &mut Matrix<'_>, owner: &Caller<'_>) {
    use AuditAction as A;
    let body = json!({ "name": "My app" });
    let app = matrix
        .does(
            "create_app",
            Some(A::AppCreated),
            post(owner, "/apps", &body),
        )
        .await;
    matrix.does("list_apps", None, get(owner, "/apps")).await;
    let app = format!("/apps/{}", text(&app, "pushable_key"));
    matrix.does("show_app", None, get(owner, &app)).await;
    let change = owner
        .request(Method::PUT, &app)
        .json(&json!({ "webhook_url": HOOK }));
    matrix.does("change_app", Some(A::AppChanged), change).await;
    let hooks = format!("{app}/webhooks");
    let body = json!({ "url": HOOK, "events": ["send_key.renewed"] });
    let created = matrix
        .does(
            "create_webhook",
            Some(A::WebhookCreated),
            post(owner, &hooks, &body),
        )
        .await;
    matrix.does("list_webhooks", None, get(owner, &hooks)).await;
    let hook = format!("{hooks}/{}", text(&created, "id"));
    let test = owner.request(Method::POST, &format!("{hook}/test"));
    matrix
        .does("test_webhook", Some(A::WebhookTested), test)
        .await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-send-key"));
    matrix
        .does("reset_send_key", Some(A::SendKeyRenewed), reset)
        .await;
    matrix.tried().await;
    for (endpoint, [list, show, retry, replay]) in [
        (
            &hook,
            [
                "list_deliveries",
                "show_delivery",
                "retry_delivery",
                "replay_webhook",
            ],
        ),
        (
            &app,
            [
                "list_app_deliveries",
                "show_app_delivery",
                "retry_app_delivery",
                "replay_app_webhook",
            ],
        ),
    ] {
        let deliveries = format!("{endpoint}/deliveries");
        let listed = matrix.does(list, None, get(owner, &deliveries)).await;
        let listed = listed["deliveries"].as_array().unwrap();
        let delivery = listed.iter().find(|it| it["event"] == "send_key.renewed");
        let delivery = format!("{deliveries}/{}", text(delivery.unwrap(), "id"));
        matrix.does(show, None, get(owner, &delivery)).await;
        let again = owner.request(Method::POST, &format!("{delivery}/retry"));
        matrix.does(retry, Some(A::WebhookRedelivered), again).await;
        matrix.forget_waiting().await;
        let since = json!({ "since": "2026-01-01", "event": "send_key.renewed" });
        let again = post(owner, &format!("{endpoint}/replay"), &since);
        matrix.does(replay, Some(A::WebhookReplayed), again).await;
        matrix.forget_waiting().await;
    }
    with_a_webhook(matrix, owner, &hook).await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-webhook-secret"));
    matrix
        .does("reset_webhook_secret", Some(A::WebhookSecretRenewed), reset)
        .await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-pushable-key"));
    let renewed = matrix
        .does("reset_pushable_key", Some(A::PushableKeyRenewed), reset)
        .await;
    let app = format!("/apps/{}", text(&renewed, "pushable_key"));
    let delete = owner.request(Method::DELETE, &app);
    matrix.does("delete_app", Some(A::AppDeleted), delete).await;
}

/// A webhook is changed, and deleted.
async fn with_a_webhook(matrix: &mut Matrix<'_>, owner: &Caller<'_>, hook: &str) {
    use AuditAction as A;
    let rotate = post(owner, &format!("{hook}/rotate-secret"), &json!({}));
    matrix
        .does(
            "rotate_webhook_secret",
            Some(A::WebhookSecretRotated),
            rotate,
        )
        .await;
    let change = owner
        .request(Method::PUT, hook)
        .json(&json!({ "is_active": false }));
    matrix
        .does("change_webhook", Some(A::WebhookChanged), change)
        .await;
    let delete = owner.request(Method::DELETE, hook);
    matrix
        .does("delete_webhook", Some(A::WebhookDeleted), delete)
        .await;
}
