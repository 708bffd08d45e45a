//! An app's keys: shown after the API secret is entered again or after signing in with a link, and renewed.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::app::AppPage;
use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::{Frame, Section};
use crate::page::owned_app::OwnedApp;
use crate::page::problem::PortalProblem;
use crate::page::said::Said;
use crate::page::session::Guest;
use crate::page::words::Moment;
use crate::page::{page, see};
use crate::settings::secret::{Proof, Renewal, check};
use mailgate_domain::accounts::{AppKey, RenewError, Visitor, WebhookSecrets};

/// The path parameters.
#[derive(Deserialize)]
pub(crate) struct OfKey {
    key: String,
}

impl OfKey {
    fn read(&self) -> Result<AppKey, PortalProblem> {
        match self.key.as_str() {
            "send-key" => Ok(AppKey::Send),
            "webhook-secret" => Ok(AppKey::Webhook),
            "pushable-key" => Ok(AppKey::Pushable),
            _ => Err(PortalProblem::not_found()),
        }
    }
}

/// The confirmation page for renewing a key.
#[derive(Template)]
#[template(path = "renew_key.html")]
struct RenewPage {
    frame: Frame,
    path: String,
    key: &'static str,
    name: &'static str,
    /// Key or secret.
    noun: &'static str,
    warning: &'static str,
    is_fresh: bool,
    /// The fingerprint of the current key when the page was made.
    last: String,
}

/// Requires the API secret again, with the way back to the app.
async fn prove(
    state: &PortalState,
    owned: &OwnedApp,
    visitor: &Visitor,
    proof: &Proof,
) -> Result<(), PortalProblem> {
    let checked = check(state, &owned.session, visitor, proof).await;
    checked.map_err(|problem| problem.leading("Back to the app", owned.path()))
}

/// The response if nothing was renewed.
fn unrenewed(owned: &OwnedApp, error: &RenewError) -> Result<Response, PortalProblem> {
    Err(match error {
        RenewError::Before => return Ok(see(&format!("{}?done=renewed-before", owned.path()))),
        RenewError::Gone => PortalProblem::not_found(),
        RenewError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    })
}

fn with_webhook_secret(mut body: AppPage, secrets: &WebhookSecrets) -> AppPage {
    secrets.secret.expose().clone_into(&mut body.webhook_secret);
    body.previous_until = secrets.previous_expires_at.map(Moment::new);
    body
}

/// Shows a secret, only in this response.
pub(crate) async fn reveal(
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
        AppKey::Send => {
            let shown = accounts.reveal_send_key(id, owned.session.author()).await?;
            let shown = shown.ok_or_else(PortalProblem::not_found)?;
            body.with_send_key(&state, shown.expose())
        }
        AppKey::Webhook => {
            let shown = accounts.reveal_webhook_secret(id, owned.session.author());
            let shown = shown.await?.ok_or_else(PortalProblem::not_found)?;
            with_webhook_secret(body, &shown)
        }
        // It is public.
        AppKey::Pushable => body,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Shows the confirmation page for renewing a key.
pub(crate) async fn confirm(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
) -> Result<Response, PortalProblem> {
    let which = of.read()?;
    let (title, key, name, warning) = match which {
        AppKey::Send => (
            "Rotate the send key?",
            "send-key",
            "send key",
            "You get a new send key. The current key stops working immediately for REST and SMTP: programs that use it can't send until you update them. Additional send keys keep working.",
        ),
        AppKey::Webhook => (
            "Rotate the webhook secret?",
            "webhook-secret",
            "webhook secret",
            "You get a new webhook secret. Deliveries are signed with both secrets for 24 hours: update your receiver by then.",
        ),
        AppKey::Pushable => (
            "Rotate the pushable key?",
            "pushable-key",
            "pushable key",
            "You get a new pushable key. Connect links with the current key stop working, and your programs must use the new key.",
        ),
    };
    let last = state.accounts.key_mark(owned.app.id, which).await?;
    let (subscriber, slug) = (&owned.session.subscriber, &owned.app.slug);
    let body = RenewPage {
        frame: Frame::load(&state, subscriber, Section::Apps, title, Some(slug)).await,
        path: owned.path(),
        // The pushable key isn't secret.
        is_fresh: key == "pushable-key" || owned.session.is_fresh(state.clock.now()),
        key,
        name,
        noun: if which == AppKey::Webhook {
            "secret"
        } else {
            "key"
        },
        warning,
        last: last.ok_or_else(PortalProblem::not_found)?,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Renews a key, and shows the new one. Resubmitting the form, for example by reloading the response, renews nothing.
pub(crate) async fn renew(
    owned: OwnedApp,
    Path(of): Path<OfKey>,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Sent(sent): Sent<Renewal>,
) -> Result<Response, PortalProblem> {
    let key = of.read()?;
    let (accounts, id, author) = (&state.accounts, owned.app.id, owned.session.author());
    let last = Some(sent.last.as_str());
    if key == AppKey::Pushable {
        return match accounts.renew_pushable_key(id, last, author).await {
            Ok(_) => Ok(see(&format!("{}?done=key-renewed", owned.path()))),
            Err(error) => unrenewed(&owned, &error),
        };
    }
    prove(&state, &owned, &visitor, &sent.proof).await?;
    let mut body = if key == AppKey::Send {
        let renewed = match accounts.renew_send_key(id, last, author).await {
            Ok(renewed) => renewed,
            Err(error) => return unrenewed(&owned, &error),
        };
        let body = AppPage::load(&state, &owned).await;
        body.with_send_key(&state, renewed.expose())
    } else {
        let renewed = match accounts.renew_webhook_secret(id, last, author).await {
            Ok(renewed) => renewed,
            Err(error) => return unrenewed(&owned, &error),
        };
        with_webhook_secret(AppPage::load(&state, &owned).await, &renewed)
    };
    body.said = Said::good("Key rotated.");
    Ok(page(StatusCode::OK, &body))
}
