//! The table `mailboxes`: choosing one for a send, connecting one, and its tokens. Disconnecting is in [`end`],
//! sender addresses are in [`addresses`], checks for replies that are due in [`due`].
//!
//! Triggers (migration 0020), deferred to the commit, raise the version of the mailbox's app: `mailboxes_come_and_go`
//! and `mailboxes_change`.

/// The mailbox in a row with further columns.
macro_rules! mailbox_of {
    ($row:ident) => {
        $crate::mailboxes::Mailbox {
            id: $row.id.into(),
            user_key: $row.user_key.into(),
            plugin: $row.plugin,
            email: $row.email,
            scopes: $row.scopes.into(),
            refresh_token_sealed: $row.refresh_token_sealed,
            access_token_sealed: $row.access_token_sealed,
            access_token_expires_at: $row.access_token_expires_at,
            token_generation: $row.token_generation,
            parked_until: $row.parked_until,
            reading_refused_at: $row.reading_refused_at,
        }
    };
}

pub mod addresses;
pub mod count;
mod disconnected;
pub mod due;
pub mod end;
pub mod former;
pub mod overview;
pub mod owned;
mod tokens;
mod wanted;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

pub use disconnected::{DisconnectedMailbox, disconnected};
pub use tokens::{claim_refresh, refresh_again, release_refresh, store_tokens};
pub use wanted::{Chosen, Wanted, find_wanted};

use mailgate_types::ids::{AppId, CredentialId, UserKey};
use mailgate_types::plugin::Plugin;

/// A connected mailbox, its tokens sealed.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// Its id.
    pub id: CredentialId,
    /// Its end user.
    pub user_key: UserKey,
    /// The provider.
    pub plugin: Plugin,
    /// Its address, as the provider spells it.
    pub email: String,
    /// The OAuth scopes that its user has granted.
    pub scopes: Arc<[String]>,
    /// The refresh token, sealed.
    pub refresh_token_sealed: Option<Vec<u8>>,
    /// The access token, sealed.
    pub access_token_sealed: Option<Vec<u8>>,
    /// When the access token expires.
    pub access_token_expires_at: Option<DateTime<Utc>>,
    /// Incremented with each new access token.
    pub token_generation: i64,
    /// Nothing is sent before then, at the provider's request.
    pub parked_until: Option<DateTime<Utc>>,
    /// Since when the provider has refused to let it be read.
    pub reading_refused_at: Option<DateTime<Utc>>,
}

/// The mailbox, if it is active.
pub async fn find_active(
    connection: &mut PgConnection,
    id: CredentialId,
) -> Result<Option<Mailbox>, sqlx::Error> {
    sqlx::query_as!(
        Mailbox,
        r#"SELECT id, user_key, plugin AS "plugin: Plugin", email, scopes, refresh_token_sealed,
                  access_token_sealed, access_token_expires_at, token_generation, parked_until,
                  reading_refused_at
           FROM mailboxes WHERE id = $1 AND status = 'active'"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// A new connection of a mailbox.
#[derive(Debug)]
pub struct Connection<'a> {
    /// The id of the mailbox, unless the address was connected before.
    pub id: CredentialId,
    /// The app.
    pub app: AppId,
    /// The end user.
    pub user_key: UserKey,
    /// The provider.
    pub plugin: Plugin,
    /// The address, as the provider spells it.
    pub email: &'a str,
    /// The address in lower case.
    pub email_lookup: &'a str,
    /// The granted OAuth scopes.
    pub scopes: &'a [String],
    /// Whether it was connected through a connect session.
    pub by_session: bool,
    /// When it was connected.
    pub now: DateTime<Utc>,
}

/// A mailbox that was connected.
#[derive(Debug)]
pub struct Upserted {
    /// Its id.
    pub id: CredentialId,
    /// Whether it was connected by a connect session, now or before, and hasn't been replaced by one since.
    pub by_session: bool,
    /// Whether it was neither connected nor stored before.
    pub is_new: bool,
}

/// Connects a mailbox, or reconnects the same address under its old id; one that is still active keeps its time of
/// connection, and one that was connected by a connect session stays marked as such. Its tokens follow through
/// [`store_tokens`], since they are sealed for that id, and its further sender addresses through [`addresses::store`].
pub async fn upsert(
    connection: &mut PgConnection,
    new: &Connection<'_>,
) -> Result<Upserted, sqlx::Error> {
    let row = sqlx::query!(
        "INSERT INTO mailboxes
             (id, app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at,
              replies_due_at, by_session, addresses_due_at, addresses_asked_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'active', $7, $8, $8, $9, $8, $8)
         ON CONFLICT ON CONSTRAINT mailboxes_user_address_key DO UPDATE
         SET email = EXCLUDED.email, status = 'active', scopes = EXCLUDED.scopes,
             disconnect_reason = NULL, disconnected_at = NULL, refresh_lease_until = NULL,
             connected_at = CASE WHEN mailboxes.status = 'active' THEN mailboxes.connected_at
                                 ELSE EXCLUDED.connected_at END,
             replies_due_at = EXCLUDED.replies_due_at,
             reading_refused = NULL, reading_refused_at = NULL,
             is_degraded = false, reading_told_at = NULL,
             addresses_due_at = EXCLUDED.addresses_due_at,
             addresses_asked_at = EXCLUDED.addresses_asked_at,
             by_session = EXCLUDED.by_session
                 OR mailboxes.by_session AND mailboxes.disconnect_reason IS DISTINCT FROM 'replaced'
         RETURNING id, by_session",
        new.id.0,
        new.app.0,
        new.user_key.0,
        new.plugin.as_str(),
        new.email,
        new.email_lookup,
        new.scopes,
        new.now,
        new.by_session,
    )
    .fetch_one(connection)
    .await?;
    Ok(Upserted {
        id: CredentialId(row.id),
        by_session: row.by_session,
        is_new: row.id == new.id.0,
    })
}

/// Pauses sending from a mailbox until then.
pub async fn park(
    connection: &mut PgConnection,
    id: CredentialId,
    until: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET parked_until = $2 WHERE id = $1",
        id.0,
        until,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The end of a mailbox's connection.
#[derive(Debug, Clone)]
pub struct Disconnected {
    /// The reason in `user.disconnected`.
    pub reason: String,
    /// When it ended.
    pub at: DateTime<Utc>,
}

/// A mailbox as its app's subscriber sees it.
#[derive(Debug, Clone)]
pub struct ConnectedUser {
    /// The mailbox.
    pub id: CredentialId,
    /// Its end user.
    pub user_key: UserKey,
    /// The app's own name for the user.
    pub user_id: Option<String>,
    /// Its address.
    pub email: String,
    /// Further addresses that it may send as.
    pub aliases: Vec<String>,
    /// The provider.
    pub plugin: Plugin,
    /// When and why it was disconnected; `None` while it is connected.
    pub disconnected: Option<Disconnected>,
    /// The OAuth scopes that its user has granted.
    pub scopes: Vec<String>,
    /// When it was last connected.
    pub connected_at: DateTime<Utc>,
    /// Why it can't be read, in the provider's words.
    pub reading_refused: Option<String>,
}

/// All mailboxes of an app, in order of connection.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Vec<ConnectedUser>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT mailboxes.id, user_key, user_id, email, plugin AS "plugin: Plugin", status, scopes, connected_at,
                disconnect_reason, disconnected_at, reading_refused,
                ARRAY(SELECT address FROM mailbox_addresses
                      WHERE credential_id = mailboxes.id ORDER BY place) AS "aliases!"
         FROM mailboxes JOIN end_users USING (user_key)
         WHERE mailboxes.app_id = $1
         ORDER BY connected_at, mailboxes.id"#,
        app.0,
    )
    .fetch_all(connection)
    .await?;
    let users = rows.into_iter().map(|row| ConnectedUser {
        id: CredentialId(row.id),
        user_key: UserKey(row.user_key),
        user_id: row.user_id,
        email: row.email,
        aliases: row.aliases,
        plugin: row.plugin,
        disconnected: (row.status != "active").then(|| Disconnected {
            reason: row.disconnect_reason.unwrap_or_default(),
            at: row.disconnected_at.unwrap_or(row.connected_at),
        }),
        scopes: row.scopes,
        connected_at: row.connected_at,
        reading_refused: row.reading_refused,
    });
    Ok(users.collect())
}

/// A mailbox that was disconnected.
#[derive(Debug)]
pub struct FormerMailbox {
    /// Its address.
    pub email: String,
    /// The reason in `user.disconnected`.
    pub reason: String,
    /// When it was disconnected.
    pub disconnected_at: DateTime<Utc>,
}

/// The most recently disconnected mailbox of an app: of this end user (the app's own name for the user, or the user's
/// key), plugin and address (in lower case), if given.
pub async fn find_former(
    connection: &mut PgConnection,
    app: AppId,
    user: Option<&str>,
    plugin: Option<Plugin>,
    address_lookup: Option<&str>,
) -> Result<Option<FormerMailbox>, sqlx::Error> {
    sqlx::query_as!(
        FormerMailbox,
        r#"SELECT email, coalesce(disconnect_reason, '') AS "reason!",
                  coalesce(disconnected_at, connected_at) AS "disconnected_at!"
           FROM mailboxes JOIN end_users USING (user_key)
           WHERE mailboxes.app_id = $1 AND status <> 'active'
             AND ($2::text IS NULL OR user_id = $2 OR user_key::text = $2)
             AND ($3::text IS NULL OR plugin = $3)
             AND ($4::text IS NULL OR email_lookup = $4)
           ORDER BY disconnected_at DESC NULLS LAST LIMIT 1"#,
        app.0,
        user,
        plugin.map(Plugin::as_str),
        address_lookup,
    )
    .fetch_optional(connection)
    .await
}

/// Whether any connected mailbox belongs to a user with a name of the app's own.
pub async fn has_named_users(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM mailboxes JOIN end_users USING (user_key)
               WHERE mailboxes.app_id = $1 AND status = 'active' AND user_id IS NOT NULL
           ) AS "exists!""#,
        app.0,
    )
    .fetch_one(connection)
    .await
}

/// Whether a user of the app has several mailboxes of one plugin.
pub async fn has_several_links(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM mailboxes WHERE app_id = $1 AND status = 'active'
               GROUP BY user_key, plugin HAVING count(*) > 1
           ) AS "exists!""#,
        app.0,
    )
    .fetch_one(connection)
    .await
}
