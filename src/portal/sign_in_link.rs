//! Signing in by a link. Opening it changes nothing, since mail scanners open links too: its button does.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::PortalState;
use super::frame::Frame;
use super::page::page;
use super::problem::PortalProblem;
use super::session::{Guest, signed_in};
use super::sign_in::failed;
use crate::accounts::SignInError;
use mailgate_types::secrets::LinkToken;

/// The page.
#[derive(Template)]
#[template(path = "portal/sign_in_link.html")]
struct LinkPage {
    frame: Frame,
}

fn read(token: &str) -> Result<LinkToken, PortalProblem> {
    LinkToken::parse(token).ok_or_else(|| failed(&SignInError::Spent))
}

/// Shows the button.
pub(super) async fn show(
    State(state): State<PortalState>,
    Path(token): Path<String>,
) -> Result<Response, PortalProblem> {
    let token = read(&token)?;
    if !state.accounts.portal_link_is_open(&token).await? {
        return Err(failed(&SignInError::Spent));
    }
    let frame = Frame::outside(&state, "Sign in");
    Ok(page(StatusCode::OK, &LinkPage { frame }))
}

/// Signs in, once.
pub(super) async fn sign_in(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Path(token): Path<String>,
) -> Result<Response, PortalProblem> {
    let token = read(&token)?;
    let session = state.accounts.sign_in_by_link(&token, &visitor).await;
    let session = session.map_err(|error| failed(&error))?;
    Ok(signed_in(&state, &session, "/portal"))
}
