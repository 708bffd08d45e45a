//! One delivery attempt: its payload, its response, and redelivering its event.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::indented::indented;
use super::webhook::Attempt;
use crate::PortalState;
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use crate::webhooks::{find, path};
use mailgate_domain::webhooks::RedeliverError;
use mailgate_types::ids::WebhookDeliveryId;

/// The last action.
#[derive(Default, Deserialize)]
pub(crate) struct Queued {
    /// The number of the attempt that was queued.
    #[serde(default)]
    attempt: String,
}

/// The page.
#[derive(Template)]
#[template(path = "webhook_delivery.html")]
struct DeliveryPage {
    frame: Frame,
    /// The number of the attempt that was queued.
    queued: Option<u32>,
    endpoint_path: String,
    url: String,
    webhook_id: String,
    shown: Attempt,
    why: String,
    /// For people, and as it was signed.
    payload: Option<(String, String)>,
    answer: String,
    attempts: Vec<Attempt>,
}

/// Shows the page.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path((id, delivery)): Path<(String, String)>,
    Asked(queued): Asked<Queued>,
) -> Result<Response, PortalProblem> {
    let report = find(&state, session.id(), &id).await?;
    let endpoint = report.endpoint;
    let delivery = read_id(&delivery)?;
    let config = endpoint.id.config(endpoint.app);
    let found = state.webhooks.delivery(endpoint.app, config, delivery);
    let found = found.await?.ok_or_else(PortalProblem::not_found)?;
    let delivery = found.delivery;
    let all = state.webhooks.attempts_of(endpoint.id, delivery.message);
    let all = all.await?;
    let section = Section::Webhooks;
    let slug = Some(endpoint.slug.as_str());
    let title = format!("Delivery of {}", delivery.event);
    let frame = Frame::load(&state, &session.subscriber, section, title, slug).await;
    let frame = frame.below(&endpoint.url, path(&endpoint));
    let body = DeliveryPage {
        frame,
        queued: queued.attempt.parse().ok(),
        endpoint_path: path(&endpoint),
        url: endpoint.url,
        webhook_id: delivery.message.to_string(),
        shown: Attempt::new(&delivery),
        why: delivery.error_message.unwrap_or_default(),
        payload: found.payload.map(|payload| (indented(&payload), payload)),
        answer: indented(&delivery.response_body),
        attempts: all.iter().map(Attempt::new).collect(),
    };
    Ok(page(StatusCode::OK, &body))
}

/// Delivers its event again, under the same webhook-id.
pub(crate) async fn replay(
    session: Session,
    State(state): State<PortalState>,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<Response, PortalProblem> {
    let endpoint = find(&state, session.id(), &id).await?.endpoint;
    let delivery = read_id(&delivery)?;
    let here = format!("{}/deliveries/{delivery}", path(&endpoint));
    let config = endpoint.id.config(endpoint.app);
    let (app, author) = (endpoint.app, session.author());
    let queued = state.webhooks.redeliver(app, config, delivery, author);
    let queued = queued.await.map_err(|error| unchanged(error, &here))?;
    Ok(see(&format!("{here}?attempt={}", queued.attempt_number)))
}

fn read_id(text: &str) -> Result<WebhookDeliveryId, PortalProblem> {
    text.parse().map_err(|_| PortalProblem::not_found())
}

fn unchanged(error: RedeliverError, here: &str) -> PortalProblem {
    let (status, code, text) = match error {
        RedeliverError::NotFound => return PortalProblem::not_found(),
        RedeliverError::Database(error) => return PortalProblem::database(&error),
        RedeliverError::NoUrl => (
            StatusCode::CONFLICT,
            "webhook_inactive",
            "The app no longer has a webhook URL. Set one first.",
        ),
        RedeliverError::InFlight => (
            StatusCode::CONFLICT,
            "delivery_in_flight",
            "The event is being delivered at this moment. Its outcome will be listed in a few seconds.",
        ),
        RedeliverError::Replaying => (
            StatusCode::CONFLICT,
            "replay_under_way",
            "A replay is being queued at this moment. Try again in a few seconds.",
        ),
        RedeliverError::Gone => (
            StatusCode::GONE,
            "delivery_expired",
            "The body of this event is no longer kept, or it was a test. Send a new test event instead.",
        ),
    };
    PortalProblem::new(status, code, "Nothing was queued", text)
        .leading("Back to the delivery", here.to_owned())
}
