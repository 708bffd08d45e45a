//! The log: pages of messages, and single messages.

pub(super) mod actions;
mod csv;
pub(super) mod query;
pub(super) mod queue;
mod views;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::VARY;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use crate::http::accept::{Format, negotiate};
use crate::http::access::LogsRead;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::problem::Problem;
use crate::http::query::Described;
use mailgate_domain::reports::Position;
use mailgate_types::ids::LogId;
use mailgate_types::moment::iso8601;
use query::{LogQuery, Wanted, cursor};
use views::{LogDetailShown, LogItem, LogsShown};

/// Lists your messages, newest first. A message is listed from its first attempt on. With `status=scheduled`, lists the
/// messages that are still to be sent, the next one first.
///
/// `total` is exact, and null in a search: with `to_address`, `message_id`, `log_id`, `user_id`, `credential_id` or
/// `subject`. A search takes up to two seconds, and then reports in `searched_until` how far it got. With
/// `Accept: text/csv` the response has all messages that match, without `limit`, `offset` and `cursor`: one line for
/// each, with the fields of a list entry. Cells that a spreadsheet would take for a formula begin with an
/// apostrophe. If the export can't be completed, the connection closes early.
#[utoipa::path(
    get,
    path = "/logs",
    operation_id = "list_logs",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    params(LogQuery),
    responses(
        (status = 200, description = "A page, or all matching messages as CSV", content(
            (LogsShown = "application/json"),
            (String = "text/csv"),
        )),
        (status = 406, description = "`not_acceptable`: `Accept` allows neither JSON nor CSV"),
        (status = 422, description = "`invalid_request`"),
        (status = 429, description = "`rate_limited`: too many requests with this key; `export_in_progress`: you can run one CSV export at a time"),
        (status = 503, description = "`unavailable`: the database can't be reached; `overloaded`: too many CSV exports are in progress"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsRead>,
    headers: HeaderMap,
    Described(query): Described<LogQuery>,
) -> Result<Response, Problem> {
    let (subscriber, keys) = (caller.subscriber.id, Arc::clone(&state.seal_keys));
    match negotiate(&headers).ok_or_else(not_acceptable)? {
        Format::Json => {}
        Format::Csv => {
            let wanted = query.validate_for_export(subscriber, &keys)?;
            return csv::answer(state, subscriber, wanted, caller.author).await;
        }
    }
    let wanted = query.validate(subscriber, &keys)?;
    let Wanted {
        filter,
        limit,
        start,
        cursors,
        is_scheduled,
    } = wanted;
    let next_cursor = |next: Option<Position>| {
        let sealed = next.map(|next| cursor(&keys, &cursors, next));
        sealed.transpose()
    };
    let reports = &state.reports;
    let shown = if is_scheduled {
        let page = reports.scheduled(subscriber, &filter, limit, start).await;
        let page = page?;
        LogsShown {
            logs: page.messages.into_iter().map(LogItem::scheduled).collect(),
            total: page.total,
            has_more: page.next.is_some(),
            next_cursor: next_cursor(page.next)?,
            searched_until: None,
        }
    } else {
        let page = reports.logs(subscriber, &filter, limit, start).await;
        let page = page?;
        LogsShown {
            logs: page.logs.into_iter().map(LogItem::new).collect(),
            total: page.total,
            has_more: page.has_more,
            next_cursor: next_cursor(page.next)?,
            searched_until: page.searched_until.map(iso8601),
        }
    };
    Ok(([(VARY, "Accept")], Json(shown)).into_response())
}

fn not_acceptable() -> Problem {
    Problem::new(
        StatusCode::NOT_ACCEPTABLE,
        "not_acceptable",
        "This operation returns application/json or text/csv.",
    )
}

/// Gets one message with its attempts, bounces and webhook deliveries, also a scheduled one.
#[utoipa::path(
    get,
    path = "/logs/{log_id}",
    operation_id = "show_log",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    params(("log_id" = String, Path, description = "The message's log row, `log_…`")),
    responses(
        (status = 200, body = LogDetailShown),
        (status = 404, description = "`log_not_found`"),
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<LogsRead>,
    log_id: Result<Path<String>, PathRejection>,
) -> Result<Json<LogDetailShown>, Problem> {
    let id = read_id(log_id)?;
    let log = state
        .reports
        .log(caller.subscriber.id, id)
        .await?
        .ok_or_else(no_such_log)?;
    Ok(Json(LogDetailShown::found(log)))
}

/// The ID in the path; an invalid ID matches no message.
pub(super) fn read_id(log_id: Result<Path<String>, PathRejection>) -> Result<LogId, Problem> {
    let id = log_id.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(no_such_log)
}

pub(super) fn no_such_log() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "log_not_found",
        "You have no message with this ID in the log.",
    )
}
