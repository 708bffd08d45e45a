//! What the payment provider tells.

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

/// Largest event in bytes: an invoice with many lines takes some hundred thousand.
const MAXIMUM_EVENT: usize = 1 << 20;

/// An event of the payment provider's.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "read as it came, since its signature is over the bytes"
)]
pub(crate) struct PayprovEvent {
    /// The provider's ID for it. A repeated event changes nothing.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[A-Za-z0-9_-]+$",
        example = "evt_1NG8Du2eZvKYlo2CUI79vXWy"
    )]
    id: String,
    /// What happened.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = "^[A-Za-z0-9._]+$",
        example = "customer.subscription.updated"
    )]
    r#type: String,
    /// What it happened to.
    data: PayprovEventData,
}

/// The object that an event is about.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "read as it came, since its signature is over the bytes"
)]
pub(crate) struct PayprovEventData {
    /// The object as it was then. The gateway fetches it again before acting on it.
    #[schema(value_type = Object)]
    object: serde_json::Map<String, serde_json::Value>,
}

/// An event that is stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct Received {
    /// True.
    received: bool,
}

/// Receives the payment provider's events; not for your own use. If `payprov.webhook_secret` is set, the header
/// `Stripe-Signature` must be valid. The response is sent once the event is stored.
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
    // Before a byte of the body is kept.
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
            // Anybody can make it happen.
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
            "The body isn't an event: it needs an id, a type and a data.object.",
        ),
        ReceiveError::Database(error) => Problem::database(&error),
    }
}
