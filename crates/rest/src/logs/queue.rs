//! What waits for a subscriber's apps.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::AppState;
use crate::http::access::LogsRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use crate::openapi::enums::{LogPlugin, WaitingReason, written_out};
use mailgate_domain::sending::queue::{Group, SummaryError};
use mailgate_types::moment::iso8601;

/// What waits.
#[derive(Serialize, ToSchema)]
pub(crate) struct QueueShown {
    /// Messages that wait for all of your apps, as the quotas count them: including those that are being tried again at
    /// this moment.
    #[schema(minimum = 0)]
    messages: i64,
    /// Their total size in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
    /// What waits, by app, mailbox and reason, the largest number first; at most 100.
    #[schema(max_items = 100)]
    groups: Vec<QueueGroup>,
    /// Whether `groups` holds all that waits. It doesn't beyond 100 groups or 20,000 messages.
    is_complete: bool,
}

/// Messages of one app and mailbox that wait for the same.
#[derive(Serialize, ToSchema)]
struct QueueGroup {
    /// The app's UUID.
    #[schema(format = "uuid")]
    app_id: String,
    /// The app's name.
    app_name: String,
    /// `cred_…`: the mailbox.
    oauth_credential_id: String,
    /// The mailbox's own address; null if it is gone.
    #[schema(required)]
    email: Option<String>,
    /// The mailbox's plugin.
    #[schema(schema_with = written_out::<LogPlugin>)]
    plugin: &'static str,
    /// What they wait for.
    #[schema(schema_with = written_out::<WaitingReason>)]
    reason: &'static str,
    /// How many there are.
    #[schema(minimum = 1)]
    messages: i64,
    /// Their total size in bytes.
    bytes: i64,
    /// ISO 8601, UTC: when the oldest was taken; of scheduled messages, when the first is to leave.
    #[schema(format = DateTime)]
    oldest_at: String,
    /// ISO 8601, UTC: when the next attempt of any of them is due.
    #[schema(format = DateTime)]
    next_attempt_at: String,
}

/// What waits for your apps, and for what.
///
/// A message is listed by `GET /logs?status=failed_temp` or `GET /logs?status=scheduled`, tried now by
/// `POST /logs/{log_id}/retry`, and cancelled by `POST /logs/{log_id}/cancel`.
///
/// One call is answered at a time; a further one waits five seconds at most, and is then 429 `too_many_requests`.
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
            "Another GET /queue of yours is in progress. Wait for its answer.",
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
