//! A single delivery: its payload and response, and redelivering its event.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::views::{DeliveryItem, RetriedDelivery};
use crate::AppState;
use crate::http::access::{WebhooksRead, WebhooksWrite};
use crate::http::authority::OwnedApp;
use crate::http::problem::Problem;
use crate::webhooks::no_such_webhook;
use mailgate_domain::webhooks::RedeliverError;
use mailgate_types::ids::{AppId, WebhookConfigId, WebhookDeliveryId};

/// The operation's path parameters.
#[derive(Deserialize)]
pub(crate) struct OfDelivery {
    webhook_id: String,
    delivery_id: String,
}

/// The path parameters without a configuration.
#[derive(Deserialize)]
pub(crate) struct OfAppDelivery {
    delivery_id: String,
}

/// Gets one delivery attempt to a configuration, with its payload.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}",
    operation_id = "show_delivery",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:read"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
        ("delivery_id" = String, Path, description = "The delivery, `wdel_…`"),
    ),
    responses(
        (status = 200, body = DeliveryItem),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration; `delivery_not_found`: the configuration has no such delivery"),
    )
)]
pub(crate) async fn show(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<WebhooksRead>,
    Path(path): Path<OfDelivery>,
) -> Result<Json<DeliveryItem>, Problem> {
    let config = configuration(&state, app.id, &path.webhook_id).await?;
    shown(&state, app.id, Some(config), &path.delivery_id).await
}

/// Gets one delivery attempt to the app's own `webhook_url`, with its payload.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/deliveries/{delivery_id}",
    operation_id = "show_app_delivery",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:read"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("delivery_id" = String, Path, description = "The delivery, `wdel_…`"),
    ),
    responses(
        (status = 200, body = DeliveryItem),
        (status = 404, description = "`app_not_found`; `delivery_not_found`: the app's webhook_url has no such delivery"),
    )
)]
pub(crate) async fn show_of_app(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<WebhooksRead>,
    Path(path): Path<OfAppDelivery>,
) -> Result<Json<DeliveryItem>, Problem> {
    shown(&state, app.id, None, &path.delivery_id).await
}

async fn shown(
    state: &AppState,
    app: AppId,
    config: Option<WebhookConfigId>,
    delivery: &str,
) -> Result<Json<DeliveryItem>, Problem> {
    let id: WebhookDeliveryId = delivery.parse().map_err(|_| no_such_delivery())?;
    let shown = state.webhooks.delivery(app, config, id).await;
    let shown = shown?;
    let shown = shown.ok_or_else(no_such_delivery)?;
    Ok(Json(DeliveryItem::new(config, shown)))
}

/// The app's configuration that the path names.
async fn configuration(state: &AppState, app: AppId, id: &str) -> Result<WebhookConfigId, Problem> {
    let id = id.parse().map_err(|_| no_such_webhook())?;
    let config = state.webhooks.configuration(app, id).await;
    let config = config?;
    config.map(|config| config.id).ok_or_else(no_such_webhook)
}

/// Delivers an event again immediately, as the next attempt: the same body with the same `webhook-id`. This also works
/// for an event that was delivered successfully. An event that is waiting for its next attempt is sent now.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
    operation_id = "retry_delivery",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
        ("delivery_id" = String, Path, description = "Any of the event's deliveries, `wdel_…`"),
    ),
    responses(
        (status = 202, body = RetriedDelivery),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration; `delivery_not_found`: the configuration has no such delivery"),
        (status = 409, description = "`delivery_in_flight`: the event is being delivered at this moment; `replay_under_way`: a replay of the configuration is being queued"),
        (status = 410, description = "`delivery_expired`: the event's body is no longer kept"),
    )
)]
pub(crate) async fn retry(
    State(state): State<AppState>,
    owned: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfDelivery>,
) -> Result<(StatusCode, Json<RetriedDelivery>), Problem> {
    let config = configuration(&state, owned.app.id, &path.webhook_id).await?;
    retried(&state, &owned, Some(config), &path.delivery_id).await
}

/// Delivers an event to the app's own `webhook_url` again immediately, as the next attempt: the same body with the
/// same `webhook-id`. This also works for an event that was delivered successfully. An event that is waiting for its
/// next attempt is sent now.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/deliveries/{delivery_id}/retry",
    operation_id = "retry_app_delivery",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("delivery_id" = String, Path, description = "Any of the event's deliveries, `wdel_…`"),
    ),
    responses(
        (status = 202, body = RetriedDelivery),
        (status = 404, description = "`app_not_found`; `delivery_not_found`: the app's webhook_url has no such delivery"),
        (status = 409, description = "`delivery_in_flight`: the event is being delivered at this moment; `replay_under_way`: a replay of the app is being queued; `webhook_inactive`: the app has no webhook_url"),
        (status = 410, description = "`delivery_expired`: the event's body is no longer kept"),
    )
)]
pub(crate) async fn retry_of_app(
    State(state): State<AppState>,
    owned: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfAppDelivery>,
) -> Result<(StatusCode, Json<RetriedDelivery>), Problem> {
    retried(&state, &owned, None, &path.delivery_id).await
}

async fn retried(
    state: &AppState,
    owned: &OwnedApp<WebhooksWrite>,
    config: Option<WebhookConfigId>,
    delivery: &str,
) -> Result<(StatusCode, Json<RetriedDelivery>), Problem> {
    let delivery: WebhookDeliveryId = delivery.parse().map_err(|_| no_such_delivery())?;
    let (app, author) = (owned.app.id, owned.caller.author);
    let redelivered = state.webhooks.redeliver(app, config, delivery, author);
    let redelivered = redelivered.await.map_err(not_redelivered)?;
    let answer = RetriedDelivery {
        message_id: redelivered.message.to_string(),
        webhook_config_id: config.map(|config| config.to_string()),
        attempt_number: redelivered.attempt_number,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// The same response for a missing delivery and for another endpoint's.
fn no_such_delivery() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "delivery_not_found",
        "The webhook has no delivery with this ID.",
    )
}

fn not_redelivered(error: RedeliverError) -> Problem {
    match error {
        RedeliverError::NotFound => no_such_delivery(),
        RedeliverError::NoUrl => inactive(),
        RedeliverError::InFlight => Problem::new(
            StatusCode::CONFLICT,
            "delivery_in_flight",
            "The event is being delivered at this moment; its outcome will be listed soon.",
        ),
        RedeliverError::Replaying => replay_under_way(),
        RedeliverError::Gone => Problem::new(
            StatusCode::GONE,
            "delivery_expired",
            "The event's body is no longer kept.",
        ),
        RedeliverError::Database(error) => Problem::database(&error),
    }
}

pub(crate) fn inactive() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "webhook_inactive",
        "The configuration is inactive, or the app has no webhook_url.",
    )
}

pub(crate) fn replay_under_way() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "replay_under_way",
        "A replay is being queued at this moment; try again in a second.",
    )
}
