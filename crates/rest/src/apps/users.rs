//! An app's end users.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AppState;
use crate::http::access::MailboxesWrite;
use crate::http::authority::OwnedApp;
use crate::http::problem::Problem;
use mailgate_types::ids::UserKey;

/// A released user.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReleasedUser {
    /// The `user_key`.
    #[schema(example = "0193f8a2-6c1e-7d54-9b1a-3f2c5d7e9a10")]
    released: String,
    /// How many of the user's mailboxes were connected until now.
    #[schema(example = 1)]
    disconnected: usize,
}

/// The operation's path parameters.
#[derive(Deserialize)]
pub(crate) struct OfUser {
    user_key: String,
}

/// Releases a user.
///
/// Once a connect session has connected a mailbox for a user, bare links connect no other address for them, even when
/// that mailbox is disconnected or removed. Releasing the user ends this: the user's mailboxes are disconnected, as by
/// `DELETE …/credentials/{credential_id}`, and bare links can connect any address again.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}/users/{user_key}",
    operation_id = "release_user",
    tag = "Apps",
    security(("api_secret" = ["mailboxes:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("user_key" = String, Path, description = "The user's `user_key`"),
    ),
    responses(
        (status = 200, body = ReleasedUser),
        (status = 404, description = "`app_not_found`; `user_not_found`: the app has no user with this key"),
    )
)]
pub(crate) async fn release(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MailboxesWrite>,
    Path(OfUser { user_key }): Path<OfUser>,
) -> Result<Json<ReleasedUser>, Problem> {
    let key: UserKey = user_key.parse().map_err(|_| no_such_user())?;
    let disconnected = state
        .mailboxes
        .release_user(app.id, key, caller.author)
        .await?
        .ok_or_else(no_such_user)?;
    Ok(Json(ReleasedUser {
        released: key.to_string(),
        disconnected,
    }))
}

/// The same response for a missing user and for another app's.
fn no_such_user() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "user_not_found",
        "The app has no user with this user_key.",
    )
}
