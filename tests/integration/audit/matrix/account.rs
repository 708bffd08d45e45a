//! The operations of an account, its keys and its subscription.

use mailgate_sandbox::payprov::DeliveryMode;
use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{Matrix, get, post};
use crate::support::caller::{Caller, anonymous, text};

pub(super) async fn with_keys(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    matrix.does("me", None, get(owner, "/me")).await;
    let label = owner
        .request(Method::PATCH, "/me")
        .json(&json!({ "label": "Newer" }));
    matrix
        .does("change_me", Some(A::SubscriberChanged), label)
        .await;
    let secrets = "/me/api-secrets";
    let body = json!({ "name": "Key", "scopes": ["logs:read"] });
    let created = matrix
        .does(
            "create_api_secret",
            Some(A::ApiSecretCreated),
            post(owner, secrets, &body),
        )
        .await;
    matrix
        .does("list_api_secrets", None, get(owner, secrets))
        .await;
    let one = owner.request(
        Method::DELETE,
        &format!("{secrets}/{}", text(&created, "id")),
    );
    matrix
        .does("delete_api_secret", Some(A::ApiSecretDeleted), one)
        .await;
    let keys = format!("{app}/send-keys");
    let created = matrix
        .does(
            "create_send_key",
            Some(A::SendKeyCreated),
            post(owner, &keys, &json!({ "name": "Key" })),
        )
        .await;
    matrix.does("list_send_keys", None, get(owner, &keys)).await;
    let key = format!("{keys}/{}", text(&created, "id"));
    let change = owner
        .request(Method::PUT, &key)
        .json(&json!({ "name": "Other" }));
    matrix
        .does("change_send_key", Some(A::SendKeyChanged), change)
        .await;
    let delete = owner.request(Method::DELETE, &key);
    matrix
        .does("delete_send_key", Some(A::SendKeyDeleted), delete)
        .await;
    let shown = get(owner, &format!("{app}/send-key"));
    matrix
        .does("send_key", Some(A::SendKeyRevealed), shown)
        .await;
    let shown = get(owner, &format!("{app}/webhook-secret"));
    matrix
        .does("webhook_secret", Some(A::WebhookSecretRevealed), shown)
        .await;
    let minted = owner.request(Method::POST, "/portal/sessions");
    matrix
        .does("create_portal_session", Some(A::PortalLinkMinted), minted)
        .await;
}

pub(super) async fn with_a_subscription(matrix: &mut Matrix<'_>, payer: &Caller<'_>) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    gateway.sandbox.payments.set_delivery(DeliveryMode::ByHand);
    let body = json!({ "portal_url": "https://portal.example/" });
    let checkout = post(payer, "/payprov/checkout-setup", &body);
    let page = matrix
        .does("billing_checkout_setup", Some(A::CheckoutStarted), checkout)
        .await;
    let browser = reqwest::Client::builder().no_proxy();
    let browser = browser.redirect(reqwest::redirect::Policy::none()).build();
    let card = browser.unwrap().post(text(&page, "url"));
    card.form(&[("card", "works")]).send().await.unwrap();
    let body = json!({ "return_url": "https://portal.example/" });
    let portal = post(payer, "/payprov/portal", &body);
    matrix
        .does("billing_portal", Some(A::PortalOpened), portal)
        .await;
    let reactivate = payer.request(Method::POST, "/payprov/reactivate");
    matrix
        .does(
            "billing_reactivate",
            Some(A::SubscriptionReactivated),
            reactivate,
        )
        .await;
    let cancel = payer.request(Method::POST, "/payprov/cancel-subscription");
    matrix
        .does(
            "billing_cancel_subscription",
            Some(A::SubscriptionCanceled),
            cancel,
        )
        .await;
    for (operation, path) in [
        ("billing_status", "/payprov/status"),
        ("billing_subscription", "/payprov/subscription"),
    ] {
        matrix.does(operation, None, get(payer, path)).await;
    }
    let event = anonymous(gateway, Method::POST, "/payprov/webhook").json(&json!({}));
    matrix.does("billing_webhook", None, event).await;
}
