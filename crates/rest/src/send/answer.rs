//! The responses of `POST /send` for an accepted message.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::Problem;
use crate::openapi::enums::{SCHEDULED, SendStatus, inlined};
use mailgate_domain::sending::{Answer, Outcome, Receipt};
use mailgate_types::moment::iso8601;
use mailgate_types::plugin::Plugin;

/// An accepted message.
#[derive(Serialize, ToSchema)]
pub(super) struct SentResponse {
    /// `sent`; `scheduled` for a message with `send_at`; `failed_temp` for one that the gateway will retry.
    #[schema(schema_with = inlined::<SendStatus>)]
    status: &'static str,
    /// The sender: the mailbox's address, or one of its aliases.
    from: String,
    /// The recipient.
    to: String,
    /// The mailbox's plugin.
    #[schema(value_type = Plugin)]
    plugin: &'static str,
    /// The Message-ID header.
    #[schema(required)]
    message_id: Option<String>,
    /// `log_…`: the message in the log.
    log_id: String,
}

/// A message that the gateway stored, because of its `send_at` or to retry it, so the caller must not.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "status": "failed_temp",
    "from": "ada@example.com",
    "to": "bob@example.com",
    "plugin": "plugin_a",
    "message_id": "<01h2xcejqtf2nbrexx3vqjhp41@example.com>",
    "log_id": "log_01h2xcejqtf2nbrexx3vqjhp41",
    "error": "The provider said: 451 4.3.0 Try again later",
    "retry_count": 1,
    "next_retry_at": "2026-11-02T09:31:00.000Z"
}))]
pub(super) struct QueuedResponse {
    #[serde(flatten)]
    message: SentResponse,
    /// Why it could not be sent now; only with `failed_temp`, like the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Attempts that have failed so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retry_count: Option<i32>,
    /// When the next attempt is due, ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    next_retry_at: Option<String>,
    /// When it is to be sent, ISO 8601, UTC; only with `scheduled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    send_at: Option<String>,
}

/// The response; `to` is the request's. A replayed one is marked.
pub(super) fn answer(answered: Answer, to: String) -> Result<Response, Problem> {
    let mut response = outcome_response(answered.outcome, to);
    if answered.replayed {
        let headers = match &mut response {
            Ok(response) => response.headers_mut(),
            Err(problem) => return Err(problem.clone().replayed()),
        };
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

fn outcome_response(outcome: Outcome, to: String) -> Result<Response, Problem> {
    let shown = |status, receipt: Receipt| SentResponse {
        status,
        from: receipt.from,
        to,
        plugin: receipt.plugin.as_str(),
        message_id: receipt.message_id,
        log_id: receipt.id.to_string(),
    };
    match outcome {
        Outcome::Sent { receipt } => Ok(Json(shown("sent", receipt)).into_response()),
        Outcome::Queued {
            receipt,
            failure,
            retry_count,
            next_retry_at,
        } => {
            let queued = QueuedResponse {
                message: shown("failed_temp", receipt),
                error: Some(failure.to_string()),
                retry_count: Some(retry_count),
                next_retry_at: Some(iso8601(next_retry_at)),
                send_at: None,
            };
            Ok((StatusCode::ACCEPTED, Json(queued)).into_response())
        }
        Outcome::Scheduled { receipt, send_at } => {
            let scheduled = QueuedResponse {
                message: shown(SCHEDULED, receipt),
                error: None,
                retry_count: None,
                next_retry_at: None,
                send_at: Some(iso8601(send_at)),
            };
            Ok((StatusCode::ACCEPTED, Json(scheduled)).into_response())
        }
        Outcome::Rejected {
            receipt,
            failure,
            may_have_arrived: true,
        } => Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            "outcome_unknown",
            failure.to_string(),
        )
        .with_log_id(receipt.id)),
        Outcome::Rejected {
            receipt, failure, ..
        } => Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            "provider_rejected",
            failure.to_string(),
        )
        .with_log_id(receipt.id)),
    }
}
