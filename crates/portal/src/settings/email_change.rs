//! The mailed links about a new address. Opening one changes nothing, since mail scanners open links too: its button
//! does.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::secret::{Following, not_renewed, renewed_by_link};
use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::Frame;
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, Session};
use crate::page::{page, see};
use mailgate_domain::accounts::Decision;

/// The page, before and after the button.
#[derive(Template)]
#[template(path = "email_change.html")]
struct EmailChangePage<'a> {
    frame: Frame,
    decision: &'a Decision,
    is_done: bool,
}

impl<'a> EmailChangePage<'a> {
    fn new(state: &PortalState, decision: &'a Decision, is_done: bool) -> Self {
        let title = match (decision, is_done) {
            (Decision::Confirm(_), false) => "Confirm the address?",
            (Decision::Confirm(_), true) => "The address is confirmed",
            (Decision::Stop(_), false) => "Stop the change?",
            (Decision::Stop(_), true) => "The change is stopped",
            (Decision::Restore(_), false) => "Restore the address?",
            (Decision::Restore(_), true) => "The address is restored",
        };
        Self {
            frame: Frame::outside(state, title),
            decision,
            is_done,
        }
    }
}

fn spent() -> PortalProblem {
    PortalProblem::new(
        StatusCode::GONE,
        "link_spent",
        "This link no longer works",
        "It has expired, or the change was confirmed, stopped or replaced by another. The settings show the current address.",
    )
    .leading("Sign in", "/portal/sign-in")
}

/// Shows the button.
pub(crate) async fn show(
    State(state): State<PortalState>,
    Path(token): Path<String>,
) -> Result<Response, PortalProblem> {
    let decision = state.accounts.email_decision(&token).await?;
    let decision = decision.ok_or_else(spent)?;
    Ok(page(
        StatusCode::OK,
        &EmailChangePage::new(&state, &decision, false),
    ))
}

/// Performs the link's action, and renews the API secret in the same step if the address is restored and this was
/// chosen.
pub(crate) async fn follow(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Path(token): Path<String>,
    following: Option<Sent<Following>>,
) -> Result<Response, PortalProblem> {
    let Sent(following) = following.unwrap_or_default();
    let accounts = &state.accounts;
    let followed = accounts.follow_email_link(&token, visitor.address, following.renewal());
    let followed = followed.await.map_err(|error| not_renewed(&error))?;
    let (decision, secret) = followed.ok_or_else(spent)?;
    state.billing.wake();
    if let (Decision::Restore(change), Some(secret)) = (&decision, &secret) {
        return Ok(renewed_by_link(&state, secret, Some(&change.former_email)));
    }
    Ok(page(
        StatusCode::OK,
        &EmailChangePage::new(&state, &decision, true),
    ))
}

/// Stops a change that waits for confirmation, from the settings.
pub(crate) async fn stop(
    session: Session,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let accounts = &state.accounts;
    (accounts.withdraw_email(session.id(), session.author())).await?;
    Ok(see("/portal/settings?done=email-change-stopped"))
}
