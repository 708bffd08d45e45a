//! Signing out.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::PortalState;
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, token, without_session};
use mailgate_types::audit::{Author, Credential};

/// Ends the session, if it still exists, and deletes the cookie.
pub(crate) async fn sign_out(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    headers: HeaderMap,
) -> Result<Response, PortalProblem> {
    if let Some(token) = token(&headers, &state)
        && let Some(found) = state.accounts.portal_session(&token).await?
    {
        let (subscriber, session) = (found.subscriber.id, found.session.id);
        let shown = Credential::PortalSession(session);
        let author = Author::subscriber(visitor.address, subscriber, shown);
        let ended = state
            .accounts
            .end_portal_session(subscriber, session, author);
        ended.await?;
    }
    Ok(without_session(&state, "/portal/sign-in"))
}
