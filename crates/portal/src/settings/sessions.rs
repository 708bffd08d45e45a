//! Ending sessions, from the settings.

use axum::extract::{Path, State};
use axum::response::Response;

use crate::PortalState;
use crate::page::problem::PortalProblem;
use crate::page::see;
use crate::page::session::Session;

/// Ends one.
pub(crate) async fn end(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let id = id.parse().map_err(|_| PortalProblem::not_found())?;
    let accounts = &state.accounts;
    let ended = accounts.end_portal_session(session.id(), id, session.author());
    if !ended.await? {
        return Err(PortalProblem::not_found());
    }
    Ok(see("/portal/settings?done=ended"))
}

/// Ends all but this one.
pub(crate) async fn end_others(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let (id, kept, author) = (session.id(), session.open.id, session.author());
    state
        .accounts
        .end_other_portal_sessions(id, kept, author)
        .await?;
    Ok(see("/portal/settings?done=others-ended"))
}
