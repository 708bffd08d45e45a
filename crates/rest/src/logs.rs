//! The log: a page of it, and one message.

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

/// Your messages, newest first. A message is listed from its first attempt on. With `status=scheduled`, the messages
/// that are still to leave, the next one first.
///
/// `total` is exact, and null in a search: with `to_address`, `message_id`, `log_id`, `user_id`, `credential_id` or
/// `subject`. A search takes up to two seconds, and then says with `searched_until` how far it came. With
/// `Accept: text/csv` the answer has all messages that match, without `limit`, `offset` and `cursor`: one line for
/// each, with the fields of a list's entry. Cells that a spreadsheet would take for a formula begin with an
/// apostrophe. An answer that can't be finished breaks off with its connection.
#[utoipa::path(
    get,
    path = "/logs",
    operation_id = "list_logs",
    tag = "Logs",
    security(("api_secret" = ["logs:read"])),
    params(LogQuery),
    responses(
        (status = 200, description = "A page, or all of it as CSV", content(
            (LogsShown = "application/json"),
            (String = "text/csv"),
        )),
        (status = 406, description = "`not_acceptable`: `Accept` refuses JSON, and doesn't ask for CSV"),
        (status = 422, description = "`invalid_request`"),
        (status = 429, description = "`rate_limited`: too many requests with this key; `export_in_progress`: you may take one CSV at a time"),
        (status = 503, description = "`unavailable`: the database can't be reached; `overloaded`: too many CSVs are being taken"),
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
        let page = page.map_err(|error| Problem::database(&error))?;
        LogsShown {
            logs: page.messages.into_iter().map(LogItem::scheduled).collect(),
            total: page.total,
            has_more: page.next.is_some(),
            next_cursor: next_cursor(page.next)?,
            searched_until: None,
        }
    } else {
        let page = reports.logs(subscriber, &filter, limit, start).await;
        let page = page.map_err(|error| Problem::database(&error))?;
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
        "This operation answers with application/json, or text/csv.",
    )
}

/// One message with its attempts, bounces and webhook deliveries; also one that is scheduled.
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
