//! An app's send keys: the main one, and additional ones with fewer rights.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::send_key_fields::{
    ChangeSendKeyRequest, CreateSendKeyRequest, CreatedSendKey, SendKeyItem, SendKeyList,
};
use crate::AppState;
use crate::http::access::{AppsRead, MainSecret};
use crate::http::authority::{OwnedApp, no_such_app};
use crate::http::json_body::JsonBody;
use crate::http::problem::{FieldError, Problem};
use mailgate_domain::accounts::SendKeyError;
use mailgate_types::ids::SendKeyId;

/// The operation's path parameters.
#[derive(Deserialize)]
pub(crate) struct OfSendKey {
    id: String,
}

impl OfSendKey {
    fn id(&self) -> Result<SendKeyId, Problem> {
        self.id.parse().map_err(|_| no_such_key())
    }
}

/// Lists the app's send keys, the main one first. Their values are not shown.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/send-keys",
    operation_id = "list_send_keys",
    tag = "Apps",
    security(("api_secret" = ["apps:read"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = SendKeyList),
    )
)]
pub(crate) async fn list(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<AppsRead>,
) -> Result<Json<SendKeyList>, Problem> {
    let keys = state.accounts.send_keys(app.id).await;
    let keys = keys?;
    if keys.is_empty() {
        return Err(no_such_app());
    }
    Ok(Json(SendKeyList {
        send_keys: keys.into_iter().map(SendKeyItem::new).collect(),
    }))
}

/// Creates an additional send key. Its value is shown only in this response. An app may have up to 20.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/send-keys",
    operation_id = "create_send_key",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    request_body = CreateSendKeyRequest,
    responses(
        (status = 201, body = CreatedSendKey),
        (status = 409, description = "`too_many_send_keys`: the app already has 20 additional send keys"),
    )
)]
pub(crate) async fn create(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
    JsonBody(request): JsonBody<CreateSendKeyRequest>,
) -> Result<(StatusCode, Json<CreatedSendKey>), Problem> {
    let new = request.validate(state.clock.now())?;
    let created = state.accounts.create_send_key(app.id, new, caller.author);
    let (key, value) = created.await.map_err(|error| refused(&error))?;
    let answer = CreatedSendKey {
        item: SendKeyItem::additional(key),
        send_key: value.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Changes an additional send key. Omitted fields stay as they are. Takes effect immediately, for REST and SMTP.
#[utoipa::path(
    put,
    path = "/apps/{pushable_key}/send-keys/{id}",
    operation_id = "change_send_key",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("id" = String, Path, description = "The send key, `skey_…`"),
    ),
    request_body = ChangeSendKeyRequest,
    responses(
        (status = 200, body = SendKeyItem),
        (status = 404, description = "`app_not_found`; `send_key_not_found`: the app has no such send key"),
        (status = 409, description = "`main_send_key`: the main send key can be renewed, but not restricted or deleted"),
    )
)]
pub(crate) async fn change(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
    Path(path): Path<OfSendKey>,
    JsonBody(request): JsonBody<ChangeSendKeyRequest>,
) -> Result<Json<SendKeyItem>, Problem> {
    let change = request.validate(state.clock.now())?;
    let changed = (state.accounts).change_send_key(app.id, path.id()?, change, caller.author);
    let key = changed.await.map_err(|error| refused(&error))?;
    Ok(Json(SendKeyItem::additional(key)))
}

/// Deletes an additional send key. It stops working immediately, for REST and SMTP.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}/send-keys/{id}",
    operation_id = "delete_send_key",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("id" = String, Path, description = "The send key, `skey_…`"),
    ),
    responses(
        (status = 204, description = "The send key is deleted"),
        (status = 404, description = "`app_not_found`; `send_key_not_found`: the app has no such send key"),
        (status = 409, description = "`main_send_key`: the main send key can be renewed, but not restricted or deleted"),
    )
)]
pub(crate) async fn delete(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
    Path(path): Path<OfSendKey>,
) -> Result<StatusCode, Problem> {
    let deleted = (state.accounts).delete_send_key(app.id, path.id()?, caller.author);
    deleted.await.map_err(|error| refused(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// The same response for a missing key and for another app's.
fn no_such_key() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "send_key_not_found",
        "The app has no send key with this ID.",
    )
}

fn refused(error: &SendKeyError) -> Problem {
    match error {
        SendKeyError::AppGone => no_such_app(),
        SendKeyError::NotFound => no_such_key(),
        SendKeyError::Main => {
            Problem::new(StatusCode::CONFLICT, "main_send_key", error.to_string())
        }
        SendKeyError::TooMany => Problem::new(
            StatusCode::CONFLICT,
            "too_many_send_keys",
            error.to_string(),
        ),
        SendKeyError::ForeignMailboxes(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let detail = format!("are not mailboxes of the app: {}", ids.join(", "));
            Problem::fields(vec![FieldError::new("credential_ids", detail)])
        }
        SendKeyError::Database(error) => Problem::database(error),
        error => Problem::internal(error),
    }
}
