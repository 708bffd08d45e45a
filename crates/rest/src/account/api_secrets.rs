//! Additional API secrets, each limited to its scopes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::api_secret_fields::{
    ApiSecretItem, ApiSecretList, CreateApiSecretRequest, CreatedApiSecret,
};
use super::me::secret_renewed;
use crate::AppState;
use crate::http::access::MainSecret;
use crate::http::authority::AuthenticatedSubscriber;
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use mailgate_domain::accounts::ApiSecretError;

/// The operation's path parameters.
#[derive(Deserialize)]
pub(crate) struct OfSecret {
    id: String,
}

/// Lists your additional API secrets, oldest first. Their values are not shown.
#[utoipa::path(
    get,
    path = "/me/api-secrets",
    operation_id = "list_api_secrets",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    responses(
        (status = 200, body = ApiSecretList),
    )
)]
pub(crate) async fn list(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
) -> Result<Json<ApiSecretList>, Problem> {
    let secrets = state.accounts.api_secrets(caller.subscriber.id).await;
    let secrets = secrets?;
    Ok(Json(ApiSecretList {
        api_secrets: secrets.into_iter().map(ApiSecretItem::new).collect(),
    }))
}

/// Creates an additional API secret with scopes. Its value is shown only in this response. You may have up to 20.
///
/// Its scopes are all that it can do: no scope shows, renews or creates API secrets or send keys, changes the contact
/// address, or signs in to the portal.
#[utoipa::path(
    post,
    path = "/me/api-secrets",
    operation_id = "create_api_secret",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    request_body = CreateApiSecretRequest,
    responses(
        (status = 201, body = CreatedApiSecret),
        (status = 409, description = "`too_many_api_secrets`: you already have 20 additional API secrets"),
    )
)]
pub(crate) async fn create(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    JsonBody(request): JsonBody<CreateApiSecretRequest>,
) -> Result<(StatusCode, Json<CreatedApiSecret>), Problem> {
    let new = request.validate(state.clock.now())?;
    let (accounts, id) = (&state.accounts, caller.subscriber.id);
    let created = accounts.create_api_secret(id, new, caller.author).await;
    let (secret, value) = created.map_err(|error| match error {
        ApiSecretError::Gone => secret_renewed(),
        ApiSecretError::TooMany => Problem::new(
            StatusCode::CONFLICT,
            "too_many_api_secrets",
            error.to_string(),
        ),
        ApiSecretError::Database(error) => Problem::database(&error),
        error => Problem::internal(&error),
    })?;
    let answer = CreatedApiSecret {
        item: ApiSecretItem::new(secret),
        api_secret: value.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Deletes an additional API secret. It stops working immediately.
#[utoipa::path(
    delete,
    path = "/me/api-secrets/{id}",
    operation_id = "delete_api_secret",
    tag = "Subscriber",
    security(("api_secret" = ["main"])),
    params(("id" = String, Path, description = "The API secret, `asec_…`")),
    responses(
        (status = 204, description = "The secret is deleted"),
        (status = 404, description = "`api_secret_not_found`: you have no such API secret"),
    )
)]
pub(crate) async fn delete(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<MainSecret>,
    Path(path): Path<OfSecret>,
) -> Result<StatusCode, Problem> {
    let id = path.id.parse().map_err(|_| no_such_secret())?;
    let deleted = (state.accounts)
        .delete_api_secret(caller.subscriber.id, id, caller.author)
        .await?;
    if deleted {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_secret())
    }
}

/// The same response for a missing secret and for another subscriber's.
fn no_such_secret() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "api_secret_not_found",
        "You have no additional API secret with this ID.",
    )
}
