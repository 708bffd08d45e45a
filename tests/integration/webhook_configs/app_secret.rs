//! The secret of an app's own `webhook_url`: shown to its subscriber, and renewed.

use serde_json::json;

use super::{arrived, builder, is_signed, is_signed_with};
use crate::support::caller::{Caller, has_just, is_moment, text};
use crate::support::receiver::Receiver;

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_webhook_secret_signs_from_then_on() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let body = json!({ "name": "Told", "webhook_url": receiver.url("/") });
    let app = caller.post("/apps", &body).await.success(201);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    let shown = caller
        .get(&format!("{path}/webhook-secret"))
        .await
        .success(200);
    assert_eq!(
        shown,
        json!({ "webhook_secret": app["webhook_secret"], "previous_secret_expires_at": null })
    );
    is_signed(
        &arrived(&gateway, &receiver, 1).await[0],
        text(&shown, "webhook_secret"),
    );

    let reset = format!("{path}/reset-webhook-secret");
    let renewed = caller.reset(&reset).await.success(200);
    has_just(
        &renewed,
        vec!["webhook_secret", "previous_secret_expires_at"],
    );
    is_moment(text(&renewed, "previous_secret_expires_at"));
    let secret = text(&renewed, "webhook_secret");
    assert!(
        secret.starts_with("whs_") && secret.len() == 47,
        "{}",
        secret.len()
    );
    let old = text(&shown, "webhook_secret").to_owned();
    assert_ne!(old, secret);
    let shown = caller
        .get(&format!("{path}/webhook-secret"))
        .await
        .success(200);
    assert_eq!(shown, renewed);
    // An event that costs little.
    let renewal = caller.reset(&format!("{path}/reset-send-key")).await;
    renewal.success(200);
    is_signed_with(&arrived(&gateway, &receiver, 2).await[1], &[secret, &old]);
    gateway.clock.advance(chrono::TimeDelta::hours(24));
    let shown = caller
        .get(&format!("{path}/webhook-secret"))
        .await
        .success(200);
    assert_eq!(
        shown,
        json!({ "webhook_secret": secret, "previous_secret_expires_at": null })
    );
    let renewal = caller.reset(&format!("{path}/reset-send-key")).await;
    renewal.success(200);
    is_signed(&arrived(&gateway, &receiver, 3).await[2], secret);

    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = stranger.get(&format!("{path}/webhook-secret")).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    assert_eq!(
        stranger.reset(&reset).await.problem(),
        (404, "app_not_found")
    );
    gateway.stop().await;
}
