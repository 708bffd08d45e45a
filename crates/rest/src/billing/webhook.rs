//! The payment provider's webhook.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AppState;
use crate::http::problem::Problem;
use crate::http::whole_body::whole_body;
use mailgate_domain::billing::ReceiveError;

/// Largest event in bytes: an invoice with many lines takes a few hundred thousand.
const MAXIMUM_EVENT: usize = 1 << 20;

/// An event of the payment provider.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "read as raw bytes, since the signature covers them"
)]
pub(crate) struct PayprovEvent {
    /// The provider's event ID. A repeated event changes nothing.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[A-Za-z0-9_-]+$",
        example = "evt_1NG8Du2eZvKYlo2CUI79vXWy"
    )]
    id: String,
    /// The event's type.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = "^[A-Za-z0-9._]+$",
        example = "customer.subscription.updated"
    )]
    r#type: String,
    /// The object of the event.
    data: PayprovEventData,
}

/// The object that an event is about.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "read as raw bytes, since the signature covers them"
)]
pub(crate) struct PayprovEventData {
    /// The object at the time of the event. The gateway fetches it again before acting on it.
    #[schema(value_type = Object)]
    object: serde_json::Map<String, serde_json::Value>,
}

/// A stored event.
#[derive(Serialize, ToSchema)]
pub(crate) struct Received {
    /// Always true.
    received: bool,
}

/// Receives the payment provider's events; not for your own use. If `payprov.webhook_secret` is set, the
/// `Stripe-Signature` header must be valid. The response is sent once the event is stored.
#[utoipa::path(
    post,
    path = "/payprov/webhook",
    operation_id = "billing_webhook",
    tag = "Billing",
    request_body = PayprovEvent,
    params(("Stripe-Signature" = Option<String>, Header, description = "`t=…,v1=…`: the provider's signature over the body")),
    responses(
        (status = 200, body = Received),
        (status = 400, description = "`invalid_signature`, `malformed_json`, `invalid_event` or `incomplete_body`"),
        (status = 409, description = "`billing_not_configured`"),
        (status = 503, description = "`unavailable`"),
    )
)]
pub(crate) async fn webhook(
    State(state): State<AppState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Received>, Problem> {
    let signature = headers
        .get("stripe-signature")
        .and_then(|value| value.to_str().ok());
    // Before any of the body is kept.
    state
        .billing
        .expects(signature)
        .map_err(|error| refused(&state, error))?;
    let whole = whole_body(&headers, body, MAXIMUM_EVENT).await?;
    match state.billing.receive(signature, &whole).await {
        Ok(()) => Ok(Json(Received { received: true })),
        Err(error) => Err(refused(&state, error)),
    }
}

fn refused(state: &AppState, error: ReceiveError) -> Problem {
    match error {
        ReceiveError::NotConfigured => Problem::new(
            StatusCode::CONFLICT,
            "billing_not_configured",
            "Billing is off: this gateway has no payment provider.",
        ),
        ReceiveError::Signature(error) => {
            metrics::counter!("mailgate_payprov_refused_events_total").increment(1);
            // Anyone can cause this.
            if let Some(others) = state.refused_events.next(state.clock.now()) {
                tracing::warn!(%error, others, "an event that is not the payment provider's was refused");
            }
            Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid_signature",
                "The signature is not valid.",
            )
        }
        ReceiveError::NotJson => Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed_json",
            "The body isn't valid JSON.",
        ),
        ReceiveError::NotAnEvent => Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_event",
            "The body isn't an event: it needs id, type and data.object.",
        ),
        ReceiveError::Database(error) => Problem::database(&error),
    }
}
