//! Test deliveries to a webhook configuration.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::views::{TestPayload, WebhookTestResult};
use crate::AppState;
use crate::http::access::WebhooksWrite;
use crate::http::authority::OwnedApp;
use crate::http::problem::Problem;
use crate::webhooks::{OfWebhook, no_such_webhook};
use mailgate_domain::webhooks::TestError;

/// Sends a test delivery immediately and returns its result, with 200 even if the receiver failed. Inactive
/// configurations can be tested too. The delivery is signed like any other, and isn't retried. It is listed among
/// the deliveries as a `test`, and doesn't count towards `success_rate_7d`.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/test",
    operation_id = "test_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
    ),
    responses(
        (status = 200, body = WebhookTestResult),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
        (status = 429, description = "`rate_limited`; `test_under_way`: an app may have one test delivery in progress"),
    )
)]
pub(crate) async fn test(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfWebhook>,
) -> Result<Json<WebhookTestResult>, Problem> {
    let config = state
        .webhooks
        .configuration(app.id, path.id()?)
        .await?
        .ok_or_else(no_such_webhook)?;
    let author = caller.author;
    // Frees the caller's slot: the receiver takes its time, and no query runs meanwhile.
    drop(caller);
    let tested = state.webhooks.test(&config, author).await;
    let (event, attempt) = tested.map_err(|error| match error {
        TestError::UnderWay => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "test_under_way",
            "Another test delivery of this app is in progress; wait for its result.",
        ),
        TestError::Database(error) => Problem::database(&error),
        error @ TestError::Secret => Problem::internal(&error),
    })?;
    Ok(Json(WebhookTestResult {
        success: attempt.success,
        http_status: attempt.http_status.map(i32::from),
        response_body: attempt.response_body,
        duration_ms: attempt.duration_ms,
        error_message: attempt.error_message,
        payload_sent: TestPayload::new(&event),
    }))
}
