//! An app's webhook configurations. Their tests are in `test`, their deliveries in `deliveries`.

pub(super) mod deliveries;
pub(super) mod delivery;
pub(super) mod fields;
pub(super) mod replay;
pub(super) mod secret;
pub(super) mod test;
mod views;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::AppState;
use crate::http::access::{WebhooksRead, WebhooksWrite};
use crate::http::authority::{OwnedApp, no_such_app};
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use fields::{ChangeWebhookRequest, CreateWebhookRequest};
use mailgate_domain::webhooks::ConfigurationError;
use mailgate_types::ids::WebhookConfigId;
use views::{ChangedWebhook, CreatedWebhook, WebhookItem, WebhookList};

/// The operation's path parameters.
#[derive(Deserialize)]
pub(super) struct OfWebhook {
    webhook_id: String,
}

impl OfWebhook {
    /// The ID in the path; a malformed ID is answered like an unknown one.
    pub(super) fn id(&self) -> Result<WebhookConfigId, Problem> {
        self.webhook_id.parse().map_err(|_| no_such_webhook())
    }
}

/// Lists the app's webhook configurations, oldest first. The secrets are truncated.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhooks",
    operation_id = "list_webhooks",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:read"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = WebhookList),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<WebhooksRead>,
) -> Result<Json<WebhookList>, Problem> {
    let configurations = state.webhooks.configurations(app.id).await;
    let configurations = configurations.map_err(|error| refused(&error))?;
    Ok(Json(WebhookList {
        webhooks: configurations.into_iter().map(WebhookItem::new).collect(),
    }))
}

/// Creates a webhook configuration. Its secret is shown only in this response. It receives events from now on. An
/// app may have up to 20.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks",
    operation_id = "create_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    request_body = CreateWebhookRequest,
    responses(
        (status = 201, body = CreatedWebhook),
        (status = 409, description = "`too_many_webhooks`: the app already has 20"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    JsonBody(request): JsonBody<CreateWebhookRequest>,
) -> Result<(StatusCode, Json<CreatedWebhook>), Problem> {
    let new = request.validate(state.allow_private)?;
    let (config, secret) = state
        .webhooks
        .create_configuration(app.id, new, caller.author)
        .await
        .map_err(|error| refused(&error))?;
    let answer = CreatedWebhook::new(config, &secret);
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Changes a webhook configuration. Omitted fields stay as they are.
#[utoipa::path(
    put,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}",
    operation_id = "change_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
    ),
    request_body = ChangeWebhookRequest,
    responses(
        (status = 200, body = ChangedWebhook),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfWebhook>,
    JsonBody(request): JsonBody<ChangeWebhookRequest>,
) -> Result<Json<ChangedWebhook>, Problem> {
    let change = request.validate(state.allow_private)?;
    state
        .webhooks
        .change_configuration(app.id, path.id()?, &change, caller.author)
        .await?
        .map(|config| Json(ChangedWebhook::new(config)))
        .ok_or_else(no_such_webhook)
}

/// Deletes a webhook configuration. It receives no new events; events that have already happened are still
/// delivered.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}",
    operation_id = "delete_webhook",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
    ),
    responses(
        (status = 204, description = "The configuration is deleted"),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfWebhook>,
) -> Result<StatusCode, Problem> {
    let deleted = state
        .webhooks
        .delete_configuration(app.id, path.id()?, caller.author)
        .await?;
    if deleted {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_webhook())
    }
}

/// The same response for a missing configuration and for another app's.
pub(super) fn no_such_webhook() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "webhook_not_found",
        "The app has no webhook configuration with this ID.",
    )
}

pub(super) fn refused(error: &ConfigurationError) -> Problem {
    match error {
        ConfigurationError::Gone => no_such_app(),
        ConfigurationError::TooMany => {
            let detail = error.to_string();
            Problem::new(StatusCode::CONFLICT, "too_many_webhooks", detail)
        }
        ConfigurationError::Database(error) => Problem::database(error),
        error => Problem::internal(error),
    }
}
