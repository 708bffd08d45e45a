//! An app's connected mailboxes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use crate::http::access::MailboxesWrite;
use crate::http::authority::OwnedApp;
use crate::http::problem::Problem;
use mailgate_types::ids::CredentialId;

/// A disconnected mailbox.
#[derive(Serialize, ToSchema)]
pub(super) struct DisconnectedMailbox {
    /// `cred_…`: the mailbox.
    #[schema(example = "cred_01h2xcejqtf2nbrexx3vqjhp41")]
    disconnected: String,
}

/// The operation's path parameters.
#[derive(Deserialize)]
pub(super) struct OfCredential {
    credential_id: String,
}

/// Disconnects a mailbox.
///
/// Deletes its tokens, revokes its grant at the provider where possible (unless the same account is still connected
/// elsewhere), and fails its waiting messages. The app receives `user.disconnected` with the reason `removed`. The
/// mailbox moves to the app's `former_users[]`; its owner can connect it again.
#[utoipa::path(
    delete,
    path = "/apps/{pushable_key}/credentials/{credential_id}",
    operation_id = "disconnect_mailbox",
    tag = "Apps",
    security(("api_secret" = ["mailboxes:write"])),
    params(
        ("pushable_key" = String, Path, description = "The app's pushable key, `pk_…`"),
        ("credential_id" = String, Path, description = "The mailbox, `cred_…`"),
    ),
    responses(
        (status = 200, body = DisconnectedMailbox),
        (status = 404, description = "`app_not_found`; `credential_not_found`: the app has no such mailbox, or it is not connected"),
    )
)]
pub(super) async fn disconnect(
    State(state): State<AppState>,
    OwnedApp { app, caller }: OwnedApp<MailboxesWrite>,
    Path(OfCredential { credential_id }): Path<OfCredential>,
) -> Result<Json<DisconnectedMailbox>, Problem> {
    let id: CredentialId = credential_id.parse().map_err(|_| no_such_credential())?;
    let disconnected = state
        .mailboxes
        .disconnect(app.id, id, caller.author)
        .await?;
    if disconnected {
        Ok(Json(DisconnectedMailbox {
            disconnected: id.to_string(),
        }))
    } else {
        Err(no_such_credential())
    }
}

/// The same response for a missing mailbox, a disconnected one, and another app's.
fn no_such_credential() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "credential_not_found",
        "The app has no connected mailbox with this ID.",
    )
}
