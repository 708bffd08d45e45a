//! Signing in by a link. Opening it changes nothing, since mail scanners open links too: its button does.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::PortalState;
use super::fields::Sent;
use super::frame::Frame;
use super::page::{page, see};
use super::problem::PortalProblem;
use super::session::{Guest, signed_in};
use super::settings_secret::{Following, renew_by_link};
use super::sign_in::failed;
use crate::accounts::SignInError;
use mailgate_types::secrets::LinkToken;
use mailgate_types::sign_in::SignedInBy;

/// The page.
#[derive(Template)]
#[template(path = "portal/sign_in_link.html")]
struct LinkPage {
    frame: Frame,
    /// Whether its holder reads the account's mail.
    is_mailed: bool,
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
    let kind = state.accounts.open_portal_link_kind(&token).await?;
    let kind = kind.ok_or_else(|| failed(&SignInError::Spent))?;
    let body = LinkPage {
        frame: Frame::outside(&state, "Sign in"),
        is_mailed: kind == SignedInBy::Link,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Signs in, once, and renews the API secret at once where that was chosen.
pub(super) async fn sign_in(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Path(token): Path<String>,
    following: Result<Sent<Following>, PortalProblem>,
) -> Result<Response, PortalProblem> {
    let token = read(&token)?;
    let session = state.accounts.sign_in_by_link(&token, &visitor).await;
    let session = session.map_err(|error| failed(&error))?;
    let Sent(following) = following.unwrap_or_default();
    let Some(renewal) = following.renewal(Some(session.session)) else {
        return Ok(signed_in(&state, &session.token, see("/portal")));
    };
    if session.by != SignedInBy::Link || session.needs_secret {
        let path = "/portal/settings/api-secret/renew";
        return Ok(signed_in(&state, &session.token, see(path)));
    }
    let renewed = renew_by_link(&state, session.subscriber, renewal, visitor.address).await;
    Ok(signed_in(&state, &session.token, renewed.into_response()))
}
