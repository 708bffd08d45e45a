//! Signing in with a link. Opening it changes nothing, since mail scanners open links too: its button does.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::Frame;
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, signed_in};
use crate::page::{page, see};
use crate::settings::secret::{Following, not_renewed, renewed_by_link};
use crate::sign_in::failed;
use mailgate_domain::accounts::SignInError;
use mailgate_types::secrets::LinkToken;

/// The page.
#[derive(Template)]
#[template(path = "sign_in_link.html")]
struct LinkPage {
    frame: Frame,
    /// Whether it can also renew the API secret.
    renews: bool,
}

fn read(token: &str) -> Result<LinkToken, PortalProblem> {
    LinkToken::parse(token).ok_or_else(|| failed(&SignInError::Spent))
}

/// Shows the button.
pub(crate) async fn show(
    State(state): State<PortalState>,
    Path(token): Path<String>,
) -> Result<Response, PortalProblem> {
    let token = read(&token)?;
    let renews = state.accounts.portal_link_renews(&token).await?;
    let body = LinkPage {
        frame: Frame::outside(&state, "Sign in"),
        renews: renews.ok_or_else(|| failed(&SignInError::Spent))?,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Signs in, once, and renews the API secret in the same step if this was chosen.
pub(crate) async fn sign_in(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Path(token): Path<String>,
    following: Option<Sent<Following>>,
) -> Result<Response, PortalProblem> {
    let token = read(&token)?;
    let Sent(following) = following.unwrap_or_default();
    let renewal = following.renewal();
    let asks = renewal.is_some();
    let signed = state.accounts.sign_in_by_link(token, visitor, renewal);
    let signed = signed.await.map_err(|error| match error {
        SignInError::Renew(error) => not_renewed(&error),
        error => failed(&error),
    })?;
    let answer = match &signed.api_secret {
        Some(secret) => renewed_by_link(&state, secret, None),
        None if asks => see("/portal/settings/api-secret/renew"),
        None => see("/portal"),
    };
    Ok(signed_in(&state, &signed.token, answer))
}
