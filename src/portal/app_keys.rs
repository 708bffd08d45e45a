//! An app's keys: shown to who shows the API secret again or has just come by a link, and renewed.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::PortalState;
use super::app::AppPage;
use super::fields::Sent;
use super::frame::{Frame, Section};
use super::owned_app::OwnedApp;
use super::page::{page, see};
use super::problem::PortalProblem;
use super::session::Guest;
use super::settings_secret::{Proof, check};
use super::words::Moment;
use crate::accounts::{RenewError, ShowError, Visitor, WebhookSecrets};

/// Which key, as paths spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Send,
    Webhook,
    Pushable,
}

/// The rest of the path.
#[derive(Deserialize)]
pub(super) struct OfKey {
    key: String,
}

impl OfKey {
    fn read(&self) -> Result<Key, PortalProblem> {
        match self.key.as_str() {
            "send-key" => Ok(Key::Send),
            "webhook-secret" => Ok(Key::Webhook),
            "pushable-key" => Ok(Key::Pushable),
            _ => Err(PortalProblem::not_found()),
        }
    }
}

/// Asks before a key is renewed.
#[derive(Template)]
#[template(path = "portal/renew_key.html")]
struct RenewPage {
    frame: Frame,
    path: String,
    app: String,
    key: &'static str,
    warning: &'static str,
    is_fresh: bool,
}

/// The ask-again rule, with the way back to the app.
async fn prove(
    state: &PortalState,
    owned: &OwnedApp,
    visitor: &Visitor,
    proof: &Proof,
) -> Result<(), PortalProblem> {
    let checked = check(state, &owned.session, visitor, proof).await;
    checked.map_err(|problem| problem.leading("Back to the app", owned.path()))
}

fn unshown(error: &ShowError) -> PortalProblem {
    match error {
        ShowError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    }
}

fn unrenewed(error: &RenewError) -> PortalProblem {
    match error {
        RenewError::Gone => PortalProblem::not_found(),
        RenewError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    }
}

fn with_webhook_secret(mut body: AppPage, secrets: &WebhookSecrets) -> AppPage {
    secrets.secret.expose().clone_into(&mut body.webhook_secret);
    body.previous_until = secrets.previous_expires_at.map(Moment::new);
    body
}

/// Shows a secret, in the answer and nowhere else.
pub(super) async fn reveal(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(proof): Sent<Proof>,
) -> Result<Response, PortalProblem> {
    let key = of.read()?;
    prove(&state, &owned, &visitor, &proof).await?;
    let (accounts, id) = (&state.accounts, owned.app.id);
    let body = AppPage::load(&state, &owned).await;
    let body = match key {
        Key::Send => {
            let shown = accounts.send_key(id).await;
            let shown = shown.map_err(|error| unshown(&error))?;
            let shown = shown.ok_or_else(PortalProblem::not_found)?;
            body.with_send_key(&state, shown.expose())
        }
        Key::Webhook => {
            let shown = accounts.webhook_secret(id).await;
            let shown = shown.map_err(|error| unshown(&error))?;
            let shown = shown.ok_or_else(PortalProblem::not_found)?;
            with_webhook_secret(body, &shown)
        }
        // It is public.
        Key::Pushable => body,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Asks whether a key is to be renewed.
pub(super) async fn confirm(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let (title, key, warning) = match of.read()? {
        Key::Send => (
            "Renew the send key?",
            "send-key",
            "You get a new send key. The current one stops working immediately for REST and SMTP: programs that use it can't send until they have the new one.",
        ),
        Key::Webhook => (
            "Renew the webhook secret?",
            "webhook-secret",
            "You get a new webhook secret. Deliveries are signed with both for 24 hours: change your receiver by then.",
        ),
        Key::Pushable => (
            "Renew the pushable key?",
            "pushable-key",
            "You get a new pushable key. Connect links with the current one stop working, and programs have to name the new one.",
        ),
    };
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let body = RenewPage {
        frame: Frame::load(&state, subscriber, Section::Apps, title, Some(slug)).await,
        path: owned.path(),
        // The pushable key is no secret.
        is_fresh: key == "pushable-key" || owned.session.is_fresh(state.clock.now()),
        app: owned.app.name,
        key,
        warning,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Renews a key, and shows the new one.
pub(super) async fn renew(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(proof): Sent<Proof>,
) -> Result<Response, PortalProblem> {
    let key = of.read()?;
    let (accounts, id, author) = (&state.accounts, owned.app.id, owned.session.author());
    if key == Key::Pushable {
        let renewed = accounts.renew_pushable_key(id, author).await;
        renewed.map_err(|error| unrenewed(&error))?;
        return Ok(see(&format!("{}?done=key-renewed", owned.path())));
    }
    prove(&state, &owned, &visitor, &proof).await?;
    let mut body = if key == Key::Send {
        let renewed = accounts.renew_send_key(id, author).await;
        let renewed = renewed.map_err(|error| unrenewed(&error))?;
        let body = AppPage::load(&state, &owned).await;
        body.with_send_key(&state, renewed.expose())
    } else {
        let renewed = accounts.renew_webhook_secret(id, author).await;
        let renewed = renewed.map_err(|error| unrenewed(&error))?;
        with_webhook_secret(AppPage::load(&state, &owned).await, &renewed)
    };
    body.said = "The key is renewed.";
    Ok(page(StatusCode::OK, &body))
}
