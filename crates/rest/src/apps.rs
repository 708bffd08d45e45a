//! A subscriber's apps.

pub(super) mod fields;
pub(super) mod refusals;
pub(super) mod send_key_fields;
pub(super) mod send_keys;
pub(super) mod suppressions;
pub(super) mod users;
mod views;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::AppState;
use crate::http::access::{AppsRead, AppsWrite, MainSecret};
use crate::http::authority::{AuthenticatedSubscriber, OwnedApp, no_such_app};
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::http::query::{Described, whole_number};
use fields::{ChangeAppRequest, CreateAppRequest};
use mailgate_domain::accounts::{ChangeError, CreateError, RenewError, ShowError};
use mailgate_types::scope::Scope;
use views::{
    AppDetail, AppFieldsShown, AppItem, Apps, ChangedApp, ConnectedMailbox, CreatedApp, DeletedApp,
    FormerUser, PushableKeyShown, SendKeyShown,
};

/// A part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Maximum number of apps to return; all by default.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    limit: Option<String>,
    /// Number of apps to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64)]
    offset: Option<String>,
}

/// Lists your apps, oldest first.
#[utoipa::path(
    get,
    path = "/apps",
    operation_id = "list_apps",
    tag = "Apps",
    security(("api_secret" = ["apps:read"])),
    params(Page),
    responses(
        (status = 200, body = Apps),
        (status = 422, description = "`invalid_request`"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<AppsRead>,
    Described(page): Described<Page>,
) -> Result<Json<Apps>, Problem> {
    let mut errors = Vec::new();
    let limit = whole_number("limit", page.limit, 1..=u32::MAX, &mut errors);
    let offset = whole_number("offset", page.offset, 0..=u32::MAX, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    let apps = state
        .accounts
        .apps(
            caller.subscriber.id,
            limit.map(i64::from),
            offset.map_or(0, i64::from),
        )
        .await?;
    Ok(Json(Apps {
        apps: apps
            .into_iter()
            .map(|app| AppItem {
                users_count: app.users_count,
                app: AppFieldsShown::new(app),
            })
            .collect(),
    }))
}

/// Creates an app. Its `app_id` is derived from the name and never changes. An additional API secret that sets
/// `webhook_url` needs `webhooks:write` too.
#[utoipa::path(
    post,
    path = "/apps",
    operation_id = "create_app",
    tag = "Apps",
    security(("api_secret" = ["apps:write"])),
    request_body = CreateAppRequest,
    responses(
        (status = 201, body = CreatedApp),
        (status = 402, description = "`subscriber_suspended`: the operator has suspended the account"),
        (status = 409, description = "`too_many_apps`: you have as many apps as `limits.apps_per_subscriber`, or your own limit, allows"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: AuthenticatedSubscriber<AppsWrite>,
    JsonBody(request): JsonBody<CreateAppRequest>,
) -> Result<(StatusCode, Json<CreatedApp>), Problem> {
    let fields = request.validate(state.allow_private)?;
    if !fields.webhook_url.is_empty() {
        caller.require(Scope::WebhooksWrite)?;
    }
    let created = state
        .accounts
        .create_own_app(caller.subscriber.id, &fields, caller.author)
        .await
        .map_err(|error| match error {
            CreateError::Database(error) => Problem::database(&error),
            error @ CreateError::Suspended(_) => Problem::suspended(format!("{error}.")),
            error @ CreateError::TooMany(_) => {
                Problem::new(StatusCode::CONFLICT, "too_many_apps", error.to_string())
            }
            error => Problem::internal(&error),
        })?;
    let require_connect_session = fields.requires_connect_session();
    let answer = CreatedApp {
        id: created.id.to_string(),
        app_id: created.slug,
        name: fields.name,
        pushable_key: created.pushable_key.expose().to_owned(),
        multiuser: fields.multiuser,
        multilink: fields.multilink,
        require_connect_session,
        suppress_bounced: fields.suppress_bounced,
        webhook_url: fields.webhook_url,
        callback_url: fields.callback_url,
        webhook_secret: created.webhook_secret.expose().to_owned(),
        send_key: created.send_key.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Gets one app with its users.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}",
    operation_id = "show_app",
    tag = "Apps",
    security(("api_secret" = ["apps:read"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = AppDetail),
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    OwnedApp { app, .. }: OwnedApp<AppsRead>,
) -> Result<Json<AppDetail>, Problem> {
    let users = state.mailboxes.users(app.id).await?;
    let mut detail = AppDetail {
        app: AppFieldsShown::new(app),
        users: Vec::new(),
        former_users: Vec::new(),
    };
    for mut user in users {
        if let Some(ended) = user.disconnected.take() {
            detail.former_users.push(FormerUser::new(user, ended));
        } else {
            let is_read = user.reading_refused.is_none()
                && state.mailboxes.tracks_replies(user.plugin, &user.scopes);
            let is_told = state.mailboxes.tells_message_id(user.plugin, &user.scopes);
            let user = ConnectedMailbox::new(user, is_read, is_told);
            detail.users.push(user);
        }
    }
    Ok(Json(detail))
}

/// Changes an app. Omitted fields stay as they are. An additional API secret that sets `webhook_url` needs
/// `webhooks:write` too.
#[utoipa::path(
    put,
    path = "/apps/{pushable_key}",
    operation_id = "change_app",
    tag = "Apps",
    security(("api_secret" = ["apps:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    request_body = ChangeAppRequest,
    responses(
        (status = 200, body = ChangedApp),
        (status = 409, description = "`would_orphan_mailboxes`"),
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<AppsWrite>,
    JsonBody(request): JsonBody<ChangeAppRequest>,
) -> Result<Json<ChangedApp>, Problem> {
    let change = request.validate(state.allow_private)?;
    if change.webhook_url.is_some() {
        caller.require(Scope::WebhooksWrite)?;
    }
    state
        .accounts
        .change_app(app.id, &change, caller.author)
        .await
        .map_err(|error| match error {
            ChangeError::Gone => no_such_app(),
            ChangeError::WouldOrphan(_) => Problem::new(
                StatusCode::CONFLICT,
                "would_orphan_mailboxes",
                error.to_string(),
            ),
            ChangeError::Database(error) => Problem::database(&error),
        })?;
    Ok(Json(ChangedApp {
        id: app.id.to_string(),
        app_id: app.slug,
        name: change.name.unwrap_or(app.name),
        pushable_key: app.pushable_key,
    }))
}

/// Permanently deletes an app, its mailboxes, keys and queued messages.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}",
    operation_id = "delete_app",
    tag = "Apps",
    security(("api_secret" = ["apps:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = DeletedApp),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<AppsWrite>,
) -> Result<Json<DeletedApp>, Problem> {
    let deleted = state.mailboxes.delete_app(app.id, caller.author).await?;
    if deleted {
        Ok(Json(DeletedApp { deleted: app.slug }))
    } else {
        Err(no_such_app())
    }
}

/// Gets the app's send key. The audit trail records each time that it was shown.
#[utoipa::path(
    get,
    path = "/apps/{pushable_key}/send-key",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = SendKeyShown),
    )
)]
pub(super) async fn send_key(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
) -> Result<Json<SendKeyShown>, Problem> {
    let key = state
        .accounts
        .reveal_send_key(app.id, caller.author)
        .await
        .map_err(|error| unshown(&error))?
        .ok_or_else(no_such_app)?;
    Ok(Json(SendKeyShown {
        send_key: key.expose().to_owned(),
    }))
}

/// The response where a key can't be shown.
pub(super) fn unshown(error: &ShowError) -> Problem {
    match error {
        ShowError::Database(error) => Problem::database(error),
        error => Problem::internal(error),
    }
}

/// Renews the send key. The old one stops working immediately, for REST and SMTP.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/reset-send-key",
    tag = "Apps",
    security(("api_secret" = ["main"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = SendKeyShown),
    )
)]
pub(super) async fn reset_send_key(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MainSecret>,
) -> Result<Json<SendKeyShown>, Problem> {
    let key = state
        .accounts
        .renew_send_key(app.id, None, caller.author)
        .await
        .map_err(not_renewed)?;
    Ok(Json(SendKeyShown {
        send_key: key.expose().to_owned(),
    }))
}

/// Renews the pushable key. Connect links with the old one stop working.
#[utoipa::path(
    post,
    path = "/apps/{pushable_key}/reset-pushable-key",
    tag = "Apps",
    security(("api_secret" = ["apps:write"])),
    params(("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`")),
    responses(
        (status = 200, body = PushableKeyShown),
    )
)]
pub(super) async fn reset_pushable_key(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<AppsWrite>,
) -> Result<Json<PushableKeyShown>, Problem> {
    let key = state
        .accounts
        .renew_pushable_key(app.id, None, caller.author)
        .await
        .map_err(not_renewed)?;
    Ok(Json(PushableKeyShown {
        pushable_key: key.expose().to_owned(),
    }))
}

pub(super) fn not_renewed(error: RenewError) -> Problem {
    match error {
        RenewError::Gone => no_such_app(),
        RenewError::Database(error) => Problem::database(&error),
        error => Problem::internal(&error),
    }
}
