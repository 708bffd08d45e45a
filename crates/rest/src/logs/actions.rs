//! Actions on a queued message: retry it now, or cancel it.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::AppState;
use crate::http::access::LogsWrite;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use crate::logs::{no_such_log, read_id};
use mailgate_domain::sending::Blocked;
use mailgate_domain::sending::queue::{QueueError, Scope};
use mailgate_types::ids::LogId;
use mailgate_types::log_status::{CANCELLED, LogStatus};
use mailgate_types::moment::iso8601;

/// A message that is retried now.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "log_id": "log_01h2xcejqtf2nbrexx3vqjhp41",
    "status": "failed_temp",
    "next_retry_at": "2026-11-02T09:30:00.000Z"
}))]
pub(crate) struct RetriedMessage {
    /// `log_…`: the message.
    log_id: String,
    /// Unchanged: `failed_temp`.
    #[schema(value_type = LogStatus)]
    status: &'static str,
    /// When its next attempt is due, ISO 8601, UTC.
    #[schema(format = DateTime)]
    next_retry_at: String,
}

/// A cancelled message.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "log_id": "log_01h2xcejqtf2nbrexx3vqjhp41",
    "status": "failed_perm",
    "error_message": "Cancelled"
}))]
pub(crate) struct CancelledMessage {
    /// `log_…`: the message.
    log_id: String,
    /// The new status: `failed_perm`.
    #[schema(value_type = LogStatus)]
    status: &'static str,
    /// `Cancelled`.
    error_message: &'static str,
}

/// Retries a waiting message now.
///
/// Its status is `failed_temp`; whatever it waits for, its next attempt is due immediately, within the limits of its
/// mailbox. It is an attempt like the others: if it fails temporarily, the message waits as long as after that many
/// attempts. The outcome is sent by webhook and recorded in the log.
#[utoipa::path(
    post,
    path = "/logs/{log_id}/retry",
    operation_id = "retry_message",
    tag = "Logs",
    security(("api_secret" = ["logs:write"])),
    params(("log_id" = String, Path, description = "The message, `log_…`")),
    responses(
        (status = 202, body = RetriedMessage),
        (status = 402, description = "`subscription_blocked`: the subscription doesn't allow sending; `subscriber_suspended`: the operator has suspended the account. The message is sent automatically once it does"),
        (status = 404, description = "`log_not_found`"),
        (status = 409, description = "`message_in_progress`: it is being sent at this moment; `message_scheduled`: it is sent at its scheduled time; `message_sent`: the provider has accepted it; `message_failed`: it has failed for good, or was cancelled"),
    )
)]
pub(crate) async fn retry(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsWrite>,
    log_id: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, Json<RetriedMessage>), Problem> {
    let id = read_id(log_id)?;
    let scope = Scope::Subscriber(caller.subscriber.id);
    let retried = state.queue.retry(scope, id, caller.author);
    let due = retried.await.map_err(|error| unchanged(error, id))?;
    let answer = RetriedMessage {
        log_id: id.to_string(),
        status: LogStatus::FailedTemp.as_str(),
        next_retry_at: iso8601(due),
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Cancels a message that is scheduled or waiting for another attempt.
///
/// It becomes `failed_perm`, with the error `Cancelled` and one `email.failed_perm`, and is never sent. If the gateway
/// can't be sure that it was not sent, it is not cancelled: 409. Cancelling it again returns the same response, so
/// repeat the request if you get no response.
#[utoipa::path(
    post,
    path = "/logs/{log_id}/cancel",
    operation_id = "cancel_message",
    tag = "Logs",
    security(("api_secret" = ["logs:write"])),
    params(("log_id" = String, Path, description = "The message, `log_…`")),
    responses(
        (status = 200, body = CancelledMessage),
        (status = 404, description = "`log_not_found`"),
        (status = 409, description = "`message_in_progress`: it is being sent at this moment; `outcome_unknown`: an attempt was interrupted, and the message may have arrived; `message_sent`: the provider has accepted it; `message_failed`: it has failed for good"),
    )
)]
pub(crate) async fn cancel(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsWrite>,
    log_id: Result<Path<String>, PathRejection>,
) -> Result<Json<CancelledMessage>, Problem> {
    let id = read_id(log_id)?;
    let scope = Scope::Subscriber(caller.subscriber.id);
    let cancelled = state.queue.cancel(scope, id, caller.author);
    cancelled.await.map_err(|error| unchanged(error, id))?;
    Ok(Json(CancelledMessage {
        log_id: id.to_string(),
        status: LogStatus::FailedPerm.as_str(),
        error_message: CANCELLED,
    }))
}

fn unchanged(error: QueueError, id: LogId) -> Problem {
    let text = format!("{error}.");
    let problem = match error {
        QueueError::NotFound => return no_such_log(),
        QueueError::Database(error) => return Problem::database(&error),
        QueueError::Blocked(Blocked::ByOperator(_)) => Problem::suspended(text),
        QueueError::Blocked(_) => {
            Problem::new(StatusCode::PAYMENT_REQUIRED, "subscription_blocked", text)
        }
        QueueError::InProgress => Problem::new(StatusCode::CONFLICT, "message_in_progress", text),
        QueueError::OutcomeUnknown => Problem::new(StatusCode::CONFLICT, "outcome_unknown", text),
        QueueError::Scheduled => Problem::new(StatusCode::CONFLICT, "message_scheduled", text),
        QueueError::Sent => Problem::new(StatusCode::CONFLICT, "message_sent", text),
        QueueError::Failed => Problem::new(StatusCode::CONFLICT, "message_failed", text),
    };
    problem.with_log_id(id)
}
