//! The log: a page of it, and one message.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::AppState;
use super::authority::AuthenticatedSubscriber;
use super::log_query::LogQuery;
use super::log_views::{LogDetailShown, LogItem, LogsShown};
use super::problem::Problem;
use super::query::Described;
use mailgate_types::ids::LogId;

/// Your messages, newest first. A message is listed from its first attempt on. `total` is exact. With
/// `status=scheduled`, the messages that are still to leave, the next one first.
#[utoipa::path(
    get,
    path = "/logs",
    operation_id = "list_logs",
    tag = "Logs",
    security(("api_secret" = [])),
    params(LogQuery),
    responses(
        (status = 200, body = LogsShown),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber,
    Described(query): Described<LogQuery>,
) -> Result<Json<LogsShown>, Problem> {
    let wanted = query.validate()?;
    if wanted.is_scheduled {
        let page = state
            .reports
            .scheduled(
                caller.subscriber.id,
                &wanted.filter,
                wanted.limit,
                wanted.offset,
            )
            .await
            .map_err(|error| Problem::database(&error))?;
        return Ok(Json(LogsShown {
            logs: page.messages.into_iter().map(LogItem::scheduled).collect(),
            total: page.total,
            has_more: page.has_more,
        }));
    }
    let page = state
        .reports
        .logs(
            caller.subscriber.id,
            &wanted.filter,
            wanted.limit,
            wanted.offset,
        )
        .await
        .map_err(|error| Problem::database(&error))?;
    Ok(Json(LogsShown {
        logs: page.logs.into_iter().map(LogItem::new).collect(),
        total: page.total,
        has_more: page.has_more,
    }))
}

/// One message with its attempts and webhook deliveries; also one that is scheduled.
#[utoipa::path(
    get,
    path = "/logs/{log_id}",
    operation_id = "show_log",
    tag = "Logs",
    security(("api_secret" = [])),
    params(("log_id" = String, Path, description = "The message's log row, `log_…`")),
    responses(
        (status = 200, body = LogDetailShown),
        (status = 404, description = "`log_not_found`"),
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber,
    log_id: Result<Path<String>, PathRejection>,
) -> Result<Json<LogDetailShown>, Problem> {
    let id = read_id(log_id)?;
    let log = state
        .reports
        .log(caller.subscriber.id, id)
        .await
        .map_err(|error| Problem::database(&error))?
        .ok_or_else(no_such_log)?;
    Ok(Json(LogDetailShown::found(log)))
}

/// The id in a path; what can't be one stands for no message.
pub(super) fn read_id(log_id: Result<Path<String>, PathRejection>) -> Result<LogId, Problem> {
    let id = log_id.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(no_such_log)
}

pub(super) fn no_such_log() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "log_not_found",
        "You have no message with this id in the log.",
    )
}
