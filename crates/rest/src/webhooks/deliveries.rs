//! The deliveries to a webhook configuration, or to the app's own `webhook_url`. Single deliveries are in
//! `delivery`.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::IntoParams;

use super::fields::event_name;
use super::views::DeliveryList;
use crate::AppState;
use crate::http::access::WebhooksRead;
use crate::http::authority::OwnedApp;
use crate::http::problem::{Problem, take};
use crate::http::query::{Described, whole_number};
use crate::webhooks::{OfWebhook, no_such_webhook};
use mailgate_domain::webhooks::DeliveryFilter;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, WebhookConfigId};

/// A part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// Maximum number of deliveries.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 20)]
    limit: Option<String>,
    /// Number of deliveries to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// Only deliveries of this event.
    #[param(value_type = Option<EventName>, inline)]
    event: Option<String>,
    /// Only deliveries that succeeded (true), or only those that failed (false).
    #[param(value_type = Option<bool>)]
    success: Option<String>,
}

/// Lists the delivery attempts to a configuration, newest first, including failed ones, with their payloads: up to
/// 4 MiB of them in one response.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/deliveries",
    operation_id = "list_deliveries",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:read"])),
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
pub(crate) async fn list(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<WebhooksRead>,
    Path(path): Path<OfWebhook>,
    Described(page): Described<Page>,
) -> Result<Json<DeliveryList>, Problem> {
    listed(&state, app.id, Some(path.id()?), page).await
}

/// Lists the delivery attempts to the app's own `webhook_url`, newest first, including failed ones, with their
/// payloads: up to 4 MiB of them in one response.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/deliveries",
    operation_id = "list_app_deliveries",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:read"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        Page,
    ),
    responses(
        (status = 200, body = DeliveryList),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(crate) async fn list_of_app(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<WebhooksRead>,
    Described(page): Described<Page>,
) -> Result<Json<DeliveryList>, Problem> {
    listed(&state, app.id, None, page).await
}

/// The deliveries to a configuration, or to the app's own `webhook_url`.
async fn listed(
    state: &AppState,
    app: AppId,
    id: Option<WebhookConfigId>,
    page: Page,
) -> Result<Json<DeliveryList>, Problem> {
    let mut errors = Vec::new();
    let limit = whole_number("limit", page.limit, 1..=1_000, &mut errors);
    let offset = whole_number("offset", page.offset, 0..=u32::MAX, &mut errors);
    let event = take(&mut errors, "event", page.event, event_name);
    let success = take(&mut errors, "success", page.success, |text| {
        text.parse().map_err(|_| "must be true or false")
    });
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let (limit, offset) = (limit.unwrap_or(20), offset.unwrap_or(0));
    let page = state
        .webhooks
        .deliveries(
            app,
            id,
            DeliveryFilter { event, success },
            limit.into(),
            offset.into(),
        )
        .await?
        .ok_or_else(no_such_webhook)?;
    Ok(Json(DeliveryList::new(id, page)))
}
