//! One delivery attempt: its payload, its response, and redelivering its event.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::curl::command;
use super::indented::indented;
use super::webhook::Attempt;
use crate::PortalState;
use crate::page::fields::Asked;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use crate::webhooks::{find, path, read_id as endpoint_id};
use mailgate_domain::webhooks::{
    OwnedEndpoint, RedeliverError, RequestHeader, ShownDelivery, headers_of,
};
use mailgate_types::ids::{WebhookDeliveryId, WebhookMessageId};

/// The last action.
#[derive(Default, Deserialize)]
pub(crate) struct Queued {
    /// The number of the attempt that was queued.
    #[serde(default)]
    attempt: String,
}

/// The endpoint, unless it was deleted.
struct To {
    path: String,
    url: String,
}

/// The request's body.
struct Payload {
    /// For people.
    shown: String,
    /// As it was signed.
    signed: String,
    /// The command that sends it again; `None`: nobody can sign it any more.
    curl: Option<String>,
}

/// The page.
#[derive(Template)]
#[template(path = "webhook_delivery.html")]
struct DeliveryPage {
    frame: Frame,
    /// The number of the attempt that was queued.
    queued: Option<u32>,
    /// Its own path without the delivery's ID.
    path: String,
    to: Option<To>,
    webhook_id: String,
    shown: Attempt,
    why: String,
    headers: Vec<RequestHeader>,
    payload: Option<Payload>,
    answer: String,
    attempts: Vec<Attempt>,
}

/// Shows the page, also for an endpoint that was deleted: what was delivered to it is kept as long as any delivery.
pub(crate) async fn show(
    session: Session,
    State(state): State<PortalState>,
    Path((id, delivery)): Path<(String, String)>,
    Asked(queued): Asked<Queued>,
) -> Result<Response, PortalProblem> {
    let here = format!("/portal/webhooks/{id}/deliveries");
    let (id, delivery) = (endpoint_id(&id)?, read_id(&delivery)?);
    let endpoint = state.webhooks.endpoint(session.id(), id).await?;
    let endpoint = endpoint.map(|report| report.endpoint);
    let found = state.webhooks.owned_delivery(session.id(), id, delivery);
    let found = found.await?;
    let ShownDelivery { delivery, payload } = found.ok_or_else(PortalProblem::not_found)?;
    let all = state.webhooks.attempts_of(id, delivery.message).await?;
    let payload = match payload {
        Some(body) => Some(payload_of(&state, endpoint.as_ref(), delivery.message, body).await?),
        None => None,
    };
    let title = format!("Delivery of {}", delivery.event);
    let slug = endpoint.as_ref().map(|endpoint| endpoint.slug.as_str());
    let mut frame = Frame::load(&state, &session.subscriber, Section::Webhooks, title, slug).await;
    if let Some(endpoint) = &endpoint {
        frame = frame.below(&endpoint.url, path(endpoint));
    }
    let body = DeliveryPage {
        frame,
        queued: queued.attempt.parse().ok(),
        path: here,
        to: endpoint.map(|endpoint| To {
            path: path(&endpoint),
            url: endpoint.url,
        }),
        webhook_id: delivery.message.to_string(),
        headers: headers_of(&delivery),
        shown: Attempt::new(&delivery),
        why: delivery.error_message.unwrap_or_default(),
        payload,
        answer: indented(&delivery.response_body),
        attempts: all.iter().map(Attempt::new).collect(),
    };
    Ok(page(StatusCode::OK, &body))
}

async fn payload_of(
    state: &PortalState,
    endpoint: Option<&OwnedEndpoint>,
    message: WebhookMessageId,
    body: String,
) -> Result<Payload, PortalProblem> {
    let signed = match endpoint.filter(|endpoint| !endpoint.url.is_empty()) {
        Some(endpoint) => {
            let config = endpoint.id.config(endpoint.app);
            let signing = (state.webhooks).signed_headers(endpoint.app, config, message, &body);
            signing
                .await?
                .map(|headers| command(&endpoint.url, &headers, &body))
        }
        None => None,
    };
    Ok(Payload {
        shown: indented(&body),
        signed: body,
        curl: signed,
    })
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
