//! The log as CSV.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::query::Wanted;
use crate::AppState;
use crate::http::problem::Problem;
use mailgate_domain::reports::{ExportError, NoTurn};
use mailgate_types::audit::Author;
use mailgate_types::ids::SubscriberId;

/// All rows that match a filter. If none can be read, the response is a problem.
pub(crate) async fn answer(
    state: AppState,
    subscriber: SubscriberId,
    wanted: Wanted,
    author: Author,
) -> Result<Response, Problem> {
    let (filter, stopping) = (wanted.filter, state.stopping.clone());
    let reports = &state.reports;
    let pieces = reports.csv(subscriber, filter, wanted.is_scheduled, stopping, author);
    let pieces = pieces.await.map_err(|error| refused(&error))?;
    let mut response = Response::new(Body::from_stream(pieces));
    let now = state.clock.now();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    let name = format!(
        "attachment; filename=\"logs-{}.csv\"",
        now.format("%Y%m%dT%H%M%SZ")
    );
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

fn refused(error: &ExportError) -> Problem {
    match error {
        ExportError::NoTurn(NoTurn::OfSubscriber) => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "export_in_progress",
            "You are already exporting the log. Read that response to its end, or close it.",
        ),
        ExportError::NoTurn(NoTurn::InAll) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Too many logs are being exported at the moment; try again shortly.",
        ),
        ExportError::Database(error) => Problem::database(error),
    }
}
