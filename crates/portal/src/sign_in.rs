//! Signing in with the API secret.

pub(super) mod link;
pub(super) mod mail;
pub(super) mod out;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::PortalState;
use super::page::{page, see};
use crate::page::fields::{Asked, Sent, next_path};
use crate::page::frame::Frame;
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, signed_in};
use mailgate_domain::accounts::{AuthenticateError, SignInError, Subscriber, Visitor};

/// The page to continue to.
#[derive(Deserialize)]
pub(super) struct Coming {
    #[serde(default)]
    next: String,
    /// Set once a link was requested.
    #[serde(default)]
    mailed: String,
}

/// The form.
#[derive(Deserialize)]
pub(super) struct SignInForm {
    #[serde(default)]
    api_secret: String,
    #[serde(default)]
    next: String,
}

/// The page.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: Frame,
    next: &'a str,
    /// Whether the gateway can mail links.
    mails: bool,
    said: Said<'a>,
    email: &'a str,
}

/// The message above the form.
#[derive(Clone, Copy)]
pub(super) enum Said<'a> {
    /// None.
    Nothing,
    /// The API secret is invalid.
    WrongSecret,
    /// A link was mailed, if the address has an account.
    Mailed,
    /// The address is invalid.
    WrongEmail(&'a str),
}

pub(super) fn form(state: &PortalState, next: &str, said: Said<'_>) -> Response {
    let (status, email) = match said {
        Said::Nothing | Said::Mailed => (StatusCode::OK, ""),
        Said::WrongSecret => (StatusCode::UNAUTHORIZED, ""),
        Said::WrongEmail(email) => (StatusCode::UNPROCESSABLE_ENTITY, email),
    };
    let body = SignInPage {
        frame: Frame::outside(state, "Sign in"),
        next: next_path(next),
        mails: state.sign_in_mail.is_some(),
        said,
        email,
    };
    page(status, &body)
}

/// Shows the form.
pub(super) async fn show(
    State(state): State<PortalState>,
    Asked(coming): Asked<Coming>,
) -> Response {
    let said = if coming.mailed.is_empty() {
        Said::Nothing
    } else {
        Said::Mailed
    };
    form(&state, &coming.next, said)
}

/// Signs in. Invalid secrets take longer the more of them come from an address.
pub(super) async fn sign_in(
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(sent): Sent<SignInForm>,
) -> Result<Response, PortalProblem> {
    let Some(subscriber) = subscriber_of(&state, &visitor, &sent.api_secret).await? else {
        return Ok(form(&state, &sent.next, Said::WrongSecret));
    };
    let token = state.accounts.sign_in(&subscriber, &visitor).await;
    let token = token.map_err(|error| failed(&error))?;
    Ok(signed_in(&state, &token, see(next_path(&sent.next))))
}

/// The API secret's subscriber; an invalid secret is delayed.
pub(super) async fn subscriber_of(
    state: &PortalState,
    visitor: &Visitor,
    api_secret: &str,
) -> Result<Option<Subscriber>, PortalProblem> {
    if let Some(key) = (state.accounts).present_api_secret(api_secret.trim(), Some(visitor.address))
    {
        let _place = state.accounts.hold_back(visitor.address, &key).await;
        match state.accounts.subscriber_by_api_secret(&key).await {
            Ok(subscriber) => {
                state.accounts.remember(&key);
                return Ok(Some(subscriber));
            }
            Err(AuthenticateError::Database(error)) => return Err(error.into()),
            Err(AuthenticateError::Wrong) => {}
        }
    }
    state.accounts.slow_down(visitor.address, "portal").await;
    Ok(None)
}

/// Why sign-in failed.
pub(super) fn failed(error: &SignInError) -> PortalProblem {
    match error {
        SignInError::Spent => PortalProblem::new(
            StatusCode::GONE,
            "link_spent",
            "This link no longer works",
            "A sign-in link works once, and only for a few minutes.",
        )
        .leading("Sign in again", "/portal/sign-in"),
        SignInError::Database(error) => PortalProblem::database(error),
        error @ (SignInError::NoRandomness(_) | SignInError::Renew(_)) => {
            PortalProblem::internal(error)
        }
    }
}
