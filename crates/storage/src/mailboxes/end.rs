//! The table `mailboxes`: ending a connection, and finding grants to revoke.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::event::DisconnectReason;
use mailgate_types::ids::{AppId, CredentialId, UserKey};
use mailgate_types::plugin::Plugin;

/// A mailbox whose connection has ended, with its remaining grant.
#[derive(Debug)]
pub struct Ended {
    /// Its id.
    pub id: CredentialId,
    /// Its app.
    pub app: AppId,
    /// The provider.
    pub plugin: Plugin,
    /// Its address, as the provider spells it.
    pub email: String,
    /// The address in lower case.
    pub email_lookup: String,
    /// The refresh token, sealed; this is the only copy left.
    pub refresh_token_sealed: Option<Vec<u8>>,
}

/// Ends an active mailbox and deletes its tokens and its sender addresses; with `generation`, only if its token is
/// still of that generation. `None` if there was nothing to end, so that the event is emitted only once.
pub async fn end(
    connection: &mut PgConnection,
    id: CredentialId,
    generation: Option<i64>,
    reason: DisconnectReason,
    now: DateTime<Utc>,
) -> Result<Option<Ended>, sqlx::Error> {
    // The first part reads the data that the second one erases.
    let ended = sqlx::query_as!(
        Ended,
        r#"WITH active AS (
             SELECT id, app_id, plugin, email, email_lookup, refresh_token_sealed
             FROM mailboxes
             WHERE id = $1 AND status = 'active'
               AND ($2::bigint IS NULL OR token_generation = $2)
             FOR UPDATE
         )
         UPDATE mailboxes
         SET status = 'disconnected', disconnect_reason = $3, disconnected_at = $4,
             refresh_token_sealed = NULL, access_token_sealed = NULL,
             access_token_expires_at = NULL, refresh_lease_until = NULL, refresh_gateway_id = NULL
         FROM active WHERE mailboxes.id = active.id
         RETURNING active.id, active.app_id AS app, active.plugin AS "plugin: Plugin", active.email,
                   active.email_lookup, active.refresh_token_sealed"#,
        id.0,
        generation,
        reason.as_str(),
        now,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if ended.is_some() {
        // A separate statement, so that it sees rows that were stored while waiting for the lock.
        sqlx::query!(
            "DELETE FROM mailbox_addresses WHERE credential_id = $1",
            id.0
        )
        .execute(connection)
        .await?;
    }
    Ok(ended)
}

/// The active mailboxes of a user, across all providers.
pub async fn all_of(
    connection: &mut PgConnection,
    user: UserKey,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM mailboxes WHERE user_key = $1 AND status = 'active' ORDER BY id",
        user.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(CredentialId).collect())
}

/// The user's other active mailboxes at a provider.
pub async fn others(
    connection: &mut PgConnection,
    user: UserKey,
    plugin: Plugin,
    but: CredentialId,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM mailboxes
         WHERE user_key = $1 AND plugin = $2 AND status = 'active' AND id <> $3
         ORDER BY id",
        user.0,
        plugin.as_str(),
        but.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(CredentialId).collect())
}

/// Clears the connect session mark of a user's other mailboxes of a plugin, ended ones too: a session has replaced them
/// by this one.
pub async fn replace_ended(
    connection: &mut PgConnection,
    user: UserKey,
    plugin: Plugin,
    by: CredentialId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET by_session = false
         WHERE user_key = $1 AND plugin = $2 AND id <> $3 AND by_session",
        user.0,
        plugin.as_str(),
        by.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The number of a user's other active mailboxes.
#[derive(Debug)]
pub struct Others {
    /// All of them.
    pub count: i64,
    /// Those that were connected through a connect session.
    pub by_session: i64,
}

/// Counts the active mailboxes of a user except one, across all providers.
pub async fn count_others(
    connection: &mut PgConnection,
    user: UserKey,
    but: CredentialId,
) -> Result<Others, sqlx::Error> {
    sqlx::query_as!(
        Others,
        r#"SELECT count(*) AS "count!", count(*) FILTER (WHERE by_session) AS "by_session!"
           FROM mailboxes WHERE user_key = $1 AND status = 'active' AND id <> $2"#,
        user.0,
        but.0,
    )
    .fetch_one(connection)
    .await
}

/// Whether any app has an active mailbox at this provider with this address (in lower case), or any at all if the
/// address isn't known.
pub async fn is_account_connected(
    connection: &mut PgConnection,
    plugin: Plugin,
    address_lookup: Option<&str>,
) -> Result<bool, sqlx::Error> {
    // Two statements, in the order of an index of such mailboxes, so that one entry of it is read for either, however
    // many mailboxes all subscribers have or had.
    let found = match address_lookup {
        Some(address) => {
            sqlx::query_scalar!(
                "SELECT id FROM mailboxes
                 WHERE plugin = $1 AND email_lookup = $2 AND status = 'active'
                 ORDER BY plugin, email_lookup LIMIT 1",
                plugin.as_str(),
                address,
            )
            .fetch_optional(connection)
            .await?
        }
        None => {
            sqlx::query_scalar!(
                "SELECT id FROM mailboxes WHERE plugin = $1 AND status = 'active'
                 ORDER BY plugin, email_lookup LIMIT 1",
                plugin.as_str(),
            )
            .fetch_optional(connection)
            .await?
        }
    };
    Ok(found.is_some())
}

/// The mailboxes of an app that have a grant, to be revoked once the rows are gone.
pub async fn with_grants(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Vec<Ended>, sqlx::Error> {
    sqlx::query_as!(
        Ended,
        r#"SELECT id, app_id AS app, plugin AS "plugin: Plugin", email, email_lookup, refresh_token_sealed
           FROM mailboxes WHERE app_id = $1 AND refresh_token_sealed IS NOT NULL"#,
        app.0,
    )
    .fetch_all(connection)
    .await
}
