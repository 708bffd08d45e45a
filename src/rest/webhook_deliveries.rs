//! What was delivered to a webhook configuration, and delivering it again.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::AppState;
use super::authority::OwnedApp;
use super::problem::{FieldError, Problem};
use super::query::{Described, whole_number};
use super::webhook_fields::not_in_the_catalogue;
use super::webhook_views::{DeliveryList, RetriedDelivery};
use super::webhooks::{OfWebhook, no_such_webhook};
use crate::webhooks::{DeliveryFilter, RedeliverError};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, WebhookConfigId, WebhookDeliveryId};

/// A part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Deliveries at most.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 20)]
    limit: Option<String>,
    /// Deliveries to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// Of this event only.
    #[param(value_type = Option<EventName>, inline)]
    event: Option<String>,
    /// Only deliveries that succeeded (true), or only those that failed (false).
    #[param(value_type = Option<bool>)]
    success: Option<String>,
}

/// The delivery attempts to a configuration, newest first, including failed ones.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries",
    operation_id = "list_deliveries",
    tag = "Webhooks",
    security(("api_secret" = [])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
        Page,
    ),
    responses(
        (status = 200, body = DeliveryList),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    OwnedApp(app): OwnedApp,
    Path(path): Path<OfWebhook>,
    Described(page): Described<Page>,
) -> Result<Json<DeliveryList>, Problem> {
    listed(&state, app.id, Some(path.id()?), page).await
}

/// The delivery attempts to the app's own `webhook_url`, newest first, including failed ones.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/deliveries",
    operation_id = "list_app_deliveries",
    tag = "Webhooks",
    security(("api_secret" = [])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        Page,
    ),
    responses(
        (status = 200, body = DeliveryList),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn list_of_app(
    State(state): State<AppState>,
    OwnedApp(app): OwnedApp,
    Described(page): Described<Page>,
) -> Result<Json<DeliveryList>, Problem> {
    listed(&state, app.id, None, page).await
}

/// Of a configuration, or of the app's own `webhook_url`.
async fn listed(
    state: &AppState,
    app: AppId,
    id: Option<WebhookConfigId>,
    page: Page,
) -> Result<Json<DeliveryList>, Problem> {
    let mut errors = Vec::new();
    let limit = whole_number("limit", page.limit, 1..=1_000, &mut errors);
    let offset = whole_number("offset", page.offset, 0..=u32::MAX, &mut errors);
    let event = page.event.and_then(|text| {
        let event: Option<EventName> = text.parse().ok();
        if event.is_none() {
            errors.push(FieldError::new("event", not_in_the_catalogue()));
        }
        event
    });
    let success = page.success.and_then(|text| {
        let success: Option<bool> = text.parse().ok();
        if success.is_none() {
            errors.push(FieldError::new("success", "must be true or false"));
        }
        success
    });
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let (limit, offset) = (limit.unwrap_or(20), offset.unwrap_or(0));
    let (deliveries, totals) = state
        .webhooks
        .deliveries(
            app,
            id,
            DeliveryFilter { event, success },
            limit.into(),
            offset.into(),
        )
        .await
        .map_err(|error| Problem::database(&error))?
        .ok_or_else(no_such_webhook)?;
    Ok(Json(DeliveryList::new(id, deliveries, totals)))
}

/// The path's own part.
#[derive(Deserialize)]
pub(super) struct OfDelivery {
    webhook_id: String,
    delivery_id: String,
}

/// Delivers an event again immediately, as the next attempt: the same body with the same `webhook-id`. This also
/// works for an event that was delivered successfully. An event that is waiting for its next attempt is sent now.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
    operation_id = "retry_delivery",
    tag = "Webhooks",
    security(("api_secret" = [])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
        ("delivery_id" = String, Path, description = "Any of the event's deliveries, `wdel_…`"),
    ),
    responses(
        (status = 202, body = RetriedDelivery),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration; `delivery_not_found`: the configuration has no such delivery"),
        (status = 409, description = "`delivery_in_flight`: the event is being delivered at this moment"),
        (status = 410, description = "`delivery_expired`: the event's body is no longer kept"),
    )
)]
pub(super) async fn retry(
    State(state): State<AppState>,
    OwnedApp(app): OwnedApp,
    Path(path): Path<OfDelivery>,
) -> Result<(StatusCode, Json<RetriedDelivery>), Problem> {
    let config: WebhookConfigId = path.webhook_id.parse().map_err(|_| no_such_webhook())?;
    state
        .webhooks
        .configuration(app.id, config)
        .await
        .map_err(|error| Problem::database(&error))?
        .ok_or_else(no_such_webhook)?;
    let delivery: WebhookDeliveryId = path.delivery_id.parse().map_err(|_| no_such_delivery())?;
    let redelivered = state.webhooks.redeliver(app.id, config, delivery).await;
    let redelivered = redelivered.map_err(not_redelivered)?;
    let answer = RetriedDelivery {
        message_id: redelivered.message.to_string(),
        webhook_config_id: config.to_string(),
        attempt_number: redelivered.attempt_number,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// The same for one that isn't there and for another configuration's.
fn no_such_delivery() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "delivery_not_found",
        "The webhook configuration has no delivery with this id.",
    )
}

fn not_redelivered(error: RedeliverError) -> Problem {
    match error {
        RedeliverError::NotFound => no_such_delivery(),
        RedeliverError::InFlight => Problem::new(
            StatusCode::CONFLICT,
            "delivery_in_flight",
            "The event is being delivered at this moment; its outcome is listed soon.",
        ),
        RedeliverError::Gone => Problem::new(
            StatusCode::GONE,
            "delivery_expired",
            "The event's body is no longer kept.",
        ),
        RedeliverError::Database(error) => Problem::database(&error),
    }
}
