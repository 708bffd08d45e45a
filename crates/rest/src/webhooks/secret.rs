//! The secrets that sign webhooks: shows and renews the secret of an app's own `webhook_url`, and replaces that of a
//! configuration.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::RotateSecretRequest;
use crate::AppState;
use crate::apps::{not_renewed, unshown};
use crate::http::access::{MainSecret, WebhooksWrite};
use crate::http::authority::{OwnedApp, no_such_app};
use crate::http::json_body::OptionalJsonBody;
use crate::http::problem::Problem;
use crate::webhooks::{OfWebhook, no_such_webhook, refused};
use mailgate_domain::accounts::WebhookSecrets;
use mailgate_types::moment::iso8601;
use mailgate_types::signing_secret::SecretEncoding;

/// An app's webhook secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookSecretShown {
    /// `whs_…`: signs deliveries to `webhook_url`.
    webhook_secret: String,
    /// Until when the previous secret also signs, ISO 8601, UTC; null if it doesn't.
    #[schema(required, format = DateTime)]
    previous_secret_expires_at: Option<String>,
}

impl WebhookSecretShown {
    fn new(secrets: &WebhookSecrets) -> Self {
        Self {
            webhook_secret: secrets.secret.expose().to_owned(),
            previous_secret_expires_at: secrets.previous_expires_at.map(iso8601),
        }
    }
}

/// Gets the app's webhook secret. The audit trail records each time that it was shown.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/webhook-secret",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = WebhookSecretShown),
    )
)]
pub(crate) async fn webhook_secret(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
) -> Result<Json<WebhookSecretShown>, Problem> {
    let secrets = state
        .accounts
        .reveal_webhook_secret(app.id, caller.author)
        .await
        .map_err(|error| unshown(&error))?
        .ok_or_else(no_such_app)?;
    Ok(Json(WebhookSecretShown::new(&secrets)))
}

/// Renews the webhook secret. From now on every delivery to `webhook_url` is signed with the new secret, including
/// deliveries that are waiting for their next attempt, and for 24 hours with the old one too. At most two secrets
/// sign: one that was replaced less than 24 hours ago ends immediately.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/reset-webhook-secret",
    tag = "Apps",
    security(("api_secret" = ["webhooks:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = WebhookSecretShown),
    )
)]
pub(crate) async fn reset_webhook_secret(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
) -> Result<Json<WebhookSecretShown>, Problem> {
    let secrets = state
        .accounts
        .renew_webhook_secret(app.id, None, caller.author)
        .await
        .map_err(not_renewed)?;
    Ok(Json(WebhookSecretShown::new(&secrets)))
}

/// The new secret of a webhook configuration.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedWebhookSecret {
    /// `wconf_…`
    #[schema(example = "wconf_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The new secret. Shown only in this response.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// How the key is derived from the secret.
    #[schema(value_type = SecretEncoding)]
    secret_encoding: &'static str,
    /// Until when the previous secret also signs, ISO 8601, UTC; null if it doesn't.
    #[schema(required, format = DateTime)]
    previous_secret_expires_at: Option<String>,
}

/// Replaces the secret of a webhook configuration. The new secret is shown only in this response. For 24 hours both
/// sign, the new one first, so that the receiver has time to change over; that includes events that are waiting for
/// their next attempt. At most two secrets sign: one that was replaced less than 24 hours ago ends immediately. If
/// `secret` is the current one, nothing changes.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/webhooks/{webhook_id}/rotate-secret",
    operation_id = "rotate_webhook_secret",
    tag = "Webhooks",
    security(("api_secret" = ["webhooks:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("webhook_id" = String, Path, description = "The configuration, `wconf_…`"),
    ),
    request_body = Option<RotateSecretRequest>,
    responses(
        (status = 200, body = RotatedWebhookSecret),
        (status = 404, description = "`app_not_found`; `webhook_not_found`: the app has no such configuration"),
    )
)]
pub(crate) async fn rotate(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<WebhooksWrite>,
    Path(path): Path<OfWebhook>,
    OptionalJsonBody(request): OptionalJsonBody<RotateSecretRequest>,
) -> Result<Json<RotatedWebhookSecret>, Problem> {
    let secret = request.validate()?;
    let id = path.id()?;
    let rotated = state
        .webhooks
        .rotate_secret(app.id, id, secret, caller.author)
        .await
        .map_err(|error| refused(&error))?
        .ok_or_else(no_such_webhook)?;
    Ok(Json(RotatedWebhookSecret {
        id: id.to_string(),
        secret: rotated.secret.expose().to_owned(),
        secret_encoding: rotated.secret.encoding().as_str(),
        previous_secret_expires_at: rotated.previous_expires_at.map(iso8601),
    }))
}
