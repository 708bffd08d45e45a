//! The secret that signs an endpoint's deliveries: shown once, in the response that created it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::PortalState;
use crate::page::fields::Sent;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::{Guest, Session};
use crate::page::words::Moment;
use crate::page::{page, see};
use crate::settings::secret::{Proof, check};
use crate::webhooks::{find, path};
use mailgate_domain::accounts::RenewError;
use mailgate_domain::webhooks::{ConfigurationError, OwnedEndpoint};

/// The secret, only in this response.
#[derive(Template)]
#[template(path = "webhook_secret.html")]
pub(crate) struct SecretPage<'a> {
    frame: Frame,
    secret: &'a str,
    /// Until when the previous one also signs.
    overlap: Option<Moment>,
    back: String,
}

impl<'a> SecretPage<'a> {
    /// For a new configuration.
    pub(crate) async fn created(
        state: &PortalState,
        session: &Session,
        secret: &'a str,
        back: String,
    ) -> Self {
        let (section, title) = (Section::Webhooks, "The webhook's secret");
        Self {
            frame: Frame::load(state, &session.subscriber, section, title, None).await,
            secret,
            overlap: None,
            back,
        }
    }
}

/// The confirmation page for replacing it.
#[derive(Template)]
#[template(path = "rotate_webhook_secret.html")]
struct RotatePage {
    frame: Frame,
    is_fresh: bool,
    path: String,
    url: String,
    /// The last rotation when the page was made.
    last: String,
}

/// The form.
#[derive(Default, Deserialize)]
pub(crate) struct Rotation {
    #[serde(flatten)]
    proof: Proof,
    #[serde(default)]
    last: Option<String>,
}

/// Identifies the last rotation: each one moves the previous secret's end.
fn last_rotation(endpoint: &OwnedEndpoint) -> String {
    let ends = endpoint.previous_secret_expires_at;
    ends.map_or_else(String::new, |ends| ends.timestamp_micros().to_string())
}

/// Shows the confirmation page.
pub(crate) async fn confirm_rotate(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let (section, title) = (Section::Webhooks, "Rotate the webhook secret?");
    let slug = Some(endpoint.slug.as_str());
    let body = RotatePage {
        frame: Frame::load(&state, &session.subscriber, section, title, slug).await,
        is_fresh: session.is_fresh(state.clock.now()),
        path: path(&endpoint),
        last: last_rotation(&endpoint),
        url: endpoint.url,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Replaces it, and shows the new one once: no page that can be requested again holds it, so the response to the
/// POST does. Resubmitting the form, for example by reloading the response, rotates nothing.
pub(crate) async fn rotate(
    session: Session,
    State(state): State<PortalState>,
    Guest(visitor): Guest,
    Path(id): Path<String>,
    Sent(sent): Sent<Rotation>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let back = path(&endpoint);
    if sent
        .last
        .is_some_and(|last| last != last_rotation(&endpoint))
    {
        return Ok(see(&format!("{back}?done=rotated-before")));
    }
    let checked = check(&state, &session, &visitor, &sent.proof).await;
    checked.map_err(|problem| problem.leading("Back to the webhook", back.clone()))?;
    let app = endpoint.app;
    if let Some(config) = endpoint.id.config(app) {
        let rotated = state
            .webhooks
            .rotate_secret(app, config, None, session.author());
        let rotated = rotated.await.map_err(|error| refused(&error))?;
        let rotated = rotated.ok_or_else(PortalProblem::not_found)?;
        let mut body = SecretPage::created(&state, &session, rotated.secret.expose(), back).await;
        body.overlap = rotated.previous_expires_at.map(Moment::new);
        return Ok(page(StatusCode::OK, &body));
    }
    let renewed = state
        .accounts
        .renew_webhook_secret(app, None, session.author());
    let renewed = renewed.await.map_err(|error| match error {
        RenewError::Gone => PortalProblem::not_found(),
        RenewError::Database(error) => PortalProblem::database(&error),
        error => PortalProblem::internal(&error),
    })?;
    let mut body = SecretPage::created(&state, &session, renewed.secret.expose(), back).await;
    body.overlap = renewed.previous_expires_at.map(Moment::new);
    Ok(page(StatusCode::OK, &body))
}

/// Why nothing was created or replaced.
pub(crate) fn refused(error: &ConfigurationError) -> PortalProblem {
    match error {
        ConfigurationError::Gone => PortalProblem::not_found(),
        ConfigurationError::TooMany => PortalProblem::new(
            StatusCode::CONFLICT,
            "too_many_webhooks",
            "The webhook was not added",
            format!("{error}."),
        )
        .leading("Go to the webhooks", "/portal/webhooks"),
        ConfigurationError::Database(error) => PortalProblem::database(error),
        error => PortalProblem::internal(error),
    }
}
