//! The secret that an app's own `webhook_url` is signed with.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::apps::not_renewed;
use super::authority::{ClientAddress, OwnedApp, no_such_app};
use super::problem::Problem;
use mailgate_types::audit::Author;

/// An app's webhook secret.
#[derive(Serialize, ToSchema)]
pub(super) struct WebhookSecretShown {
    /// `whs_…`: signs what goes to `webhook_url`.
    webhook_secret: String,
}

/// The app's webhook secret.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhook-secret",
    tag = "Apps",
    security(("api_secret" = [])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = WebhookSecretShown),
    )
)]
pub(super) async fn webhook_secret(
    State(state): State<AppState>,
    OwnedApp(app): OwnedApp,
) -> Result<Json<WebhookSecretShown>, Problem> {
    let secret = state
        .accounts
        .webhook_secret(app.id)
        .await
        .map_err(|error| Problem::internal(&error))?
        .ok_or_else(no_such_app)?;
    Ok(Json(WebhookSecretShown {
        webhook_secret: secret.expose().to_owned(),
    }))
}

/// Renews the webhook secret. Every delivery to `webhook_url` from now on is signed with the new one, also those
/// that wait for their next attempt.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/reset-webhook-secret",
    tag = "Apps",
    security(("api_secret" = [])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = WebhookSecretShown),
    )
)]
pub(super) async fn reset_webhook_secret(
    State(state): State<AppState>,
    OwnedApp(app): OwnedApp,
    ClientAddress(address): ClientAddress,
) -> Result<Json<WebhookSecretShown>, Problem> {
    let secret = state
        .accounts
        .renew_webhook_secret(app.id, Author::subscriber(address))
        .await
        .map_err(not_renewed)?;
    Ok(Json(WebhookSecretShown {
        webhook_secret: secret.expose().to_owned(),
    }))
}
