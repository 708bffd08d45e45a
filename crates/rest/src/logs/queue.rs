//! The queued messages of a subscriber's apps.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::AppState;
use crate::http::access::LogsRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use crate::openapi::enums::{LogPlugin, WaitingReason, inlined};
use mailgate_domain::sending::queue::{Group, SummaryError};
use mailgate_types::moment::iso8601;

/// The queue.
#[derive(Serialize, ToSchema)]
pub(crate) struct QueueShown {
    /// Queued messages of all of your apps, as the quotas count them: including those that are being retried at this
    /// moment.
    #[schema(minimum = 0)]
    messages: i64,
    /// Their total size in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
    /// The queued messages by app, mailbox and reason, the largest group first; at most 100.
    #[schema(max_items = 100)]
    groups: Vec<QueueGroup>,
    /// Whether `groups` is complete. It isn't beyond 100 groups or 20,000 messages.
    is_complete: bool,
}

/// Messages of one app and mailbox that wait for the same reason.
#[derive(Serialize, ToSchema)]
struct QueueGroup {
    /// The app's UUID.
    #[schema(format = "uuid")]
    app_id: String,
    /// The app's name.
    app_name: String,
    /// `cred_…`: the mailbox.
    oauth_credential_id: String,
    /// The mailbox's own address; null if the mailbox no longer exists.
    #[schema(required)]
    email: Option<String>,
    /// The mailbox's plugin.
    #[schema(schema_with = inlined::<LogPlugin>)]
    plugin: &'static str,
    /// The reason.
    #[schema(schema_with = inlined::<WaitingReason>)]
    reason: &'static str,
    /// Number of messages.
    #[schema(minimum = 1)]
    messages: i64,
    /// Their total size in bytes.
    bytes: i64,
    /// When the oldest was accepted, ISO 8601, UTC; for scheduled messages, when the first is to be sent.
    #[schema(format = DateTime)]
    oldest_at: String,
    /// When the next attempt of any of them is due, ISO 8601, UTC.
    #[schema(format = DateTime)]
    next_attempt_at: String,
}

/// Shows your apps' queued messages and why they wait.
///
/// `GET /logs?status=failed_temp` and `GET /logs?status=scheduled` list them,
/// `POST /logs/{log_id}/retry` retries one now, and `POST /logs/{log_id}/cancel` cancels one.
///
/// One call is served at a time; a further one waits up to five seconds, and then gets 429 `too_many_requests`.
#[utoipa::path(
    get,
    path = "/queue",
    operation_id = "show_queue",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    responses((status = 200, body = QueueShown))
)]
pub(crate) async fn show(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsRead>,
) -> Result<Json<QueueShown>, Problem> {
    let summary = state.queue.summary(caller.subscriber.id).await;
    let summary = summary.map_err(|error| match error {
        SummaryError::Busy(_) => Problem::too_many_requests(
            "Another GET /queue of yours is in progress. Wait for its response.",
        ),
        SummaryError::Database(error) => Problem::database(&error),
    })?;
    Ok(Json(QueueShown {
        messages: summary.usage.messages,
        bytes: summary.usage.bytes,
        groups: (summary.groups.groups.into_iter())
            .map(QueueGroup::new)
            .collect(),
        is_complete: summary.groups.is_complete,
    }))
}

impl QueueGroup {
    fn new(group: Group) -> Self {
        Self {
            app_id: group.app.to_string(),
            app_name: group.app_name,
            oauth_credential_id: group.credential.to_string(),
            email: group.email,
            plugin: group.plugin.log_name(),
            reason: group.reason.as_str(),
            messages: group.messages,
            bytes: group.bytes,
            oldest_at: iso8601(group.oldest_at),
            next_attempt_at: iso8601(group.next_attempt_at),
        }
    }
}
