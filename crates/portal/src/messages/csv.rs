//! A search's messages as CSV.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::find::with_mailbox;
use super::query::{Meaning, MessagesQuery};
use crate::PortalState;
use crate::page::fields::Asked;
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use mailgate_domain::reports::{ExportError, NoTurn};

/// All rows of a search, regardless of the page.
pub(crate) async fn export(
    session: Session,
    State(state): State<PortalState>,
    Asked(asked): Asked<MessagesQuery>,
) -> Result<Response, PortalProblem> {
    // The page's link has no guesses left.
    let query = match asked.read() {
        Meaning::Plain(query) => *query,
        Meaning::Message(id) => MessagesQuery::of_message(id),
        Meaning::Address(queries) => {
            let [by_recipient, ..] = *queries;
            by_recipient
        }
    };
    let wanted = query.validate(session.id(), &state.seal_keys);
    let mut wanted = wanted.map_err(|_| PortalProblem::unreadable())?;
    if !with_mailbox(&state, &session, &query, &mut wanted).await? {
        return Err(PortalProblem::not_found());
    }
    let (filter, stopping) = (wanted.filter, state.stopping.clone());
    let reports = &state.reports;
    let (id, author) = (session.id(), session.author());
    let pieces = reports.csv(id, filter, wanted.is_scheduled, stopping, author);
    let pieces = pieces.await.map_err(|error| refused(&error))?;
    let now = state.clock.now().format("%Y%m%dT%H%M%SZ");
    let headers = [
        (
            CONTENT_TYPE,
            "text/csv; charset=utf-8; header=present".to_owned(),
        ),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"messages-{now}.csv\""),
        ),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

fn refused(error: &ExportError) -> PortalProblem {
    match error {
        ExportError::NoTurn(NoTurn::OfSubscriber) => PortalProblem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "export_in_progress",
            "An export is in progress",
            "One export can run at a time. Wait until the other one has finished.",
        ),
        ExportError::NoTurn(NoTurn::InAll) => PortalProblem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Please try again shortly",
            "Too many exports are in progress at the moment.",
        ),
        ExportError::Database(error) => PortalProblem::database(error),
    }
}
