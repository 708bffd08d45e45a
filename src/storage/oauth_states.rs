//! The table `oauth_states`: users on their way to a provider and back.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::types::ids::AppId;
use crate::types::plugin::Plugin;

/// A way that begins.
#[derive(Debug)]
pub struct NewState<'a> {
    /// Keyed digest of the state.
    pub digest: &'a [u8],
    /// The app.
    pub app: AppId,
    /// The pushable key in the link.
    pub pushable_key: &'a str,
    /// The provider.
    pub plugin: Plugin,
    /// The app's own name for the user, as the link had it.
    pub user_id: Option<&'a str>,
    /// The account that is expected, as the link had it.
    pub login_hint: Option<&'a str>,
    /// Where the user comes back.
    pub redirect_uri: &'a str,
    /// The PKCE verifier, sealed.
    pub code_verifier_sealed: &'a [u8],
    /// When it lapses.
    pub expires_at: DateTime<Utc>,
}

/// A way that has ended.
#[derive(Debug)]
pub struct State {
    /// The digest that it was stored under.
    pub digest: Vec<u8>,
    /// The app.
    pub app: AppId,
    /// The pushable key in the link.
    pub pushable_key: String,
    /// The provider.
    pub plugin: Plugin,
    /// The app's own name for the user, as the link had it.
    pub user_id: Option<String>,
    /// The account that is expected, as the link had it.
    pub login_hint: Option<String>,
    /// Where the user came back.
    pub redirect_uri: String,
    /// The PKCE verifier, sealed.
    pub code_verifier_sealed: Vec<u8>,
    /// When it lapses, or did.
    pub expires_at: DateTime<Utc>,
}

/// Stores a way; `false` when the app is gone, or has another pushable key by now.
///
/// # Errors
///
/// What the database said.
pub async fn insert(
    connection: &mut PgConnection,
    state: &NewState<'_>,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO oauth_states
             (digest, app_id, pushable_key, plugin, user_id, login_hint, redirect_uri,
              code_verifier_sealed, expires_at)
         SELECT $1, id, pushable_key, $4, $5, $6, $7, $8, $9
         FROM apps WHERE id = $2 AND pushable_key = $3 FOR KEY SHARE",
        state.digest,
        state.app.0,
        state.pushable_key,
        state.plugin.as_str(),
        state.user_id,
        state.login_hint,
        state.redirect_uri,
        state.code_verifier_sealed,
        state.expires_at,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Takes the way with one of these digests out of the table: it is taken once.
///
/// # Errors
///
/// What the database said.
pub async fn take(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<Option<State>, sqlx::Error> {
    let row = sqlx::query!(
        "DELETE FROM oauth_states WHERE digest = ANY($1)
         RETURNING digest, app_id, pushable_key, plugin, user_id, login_hint, redirect_uri,
                   code_verifier_sealed, expires_at",
        digests,
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(State {
            digest: row.digest,
            app: AppId(row.app_id),
            pushable_key: row.pushable_key,
            plugin: row
                .plugin
                .parse()
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            user_id: row.user_id,
            login_hint: row.login_hint,
            redirect_uri: row.redirect_uri,
            code_verifier_sealed: row.code_verifier_sealed,
            expires_at: row.expires_at,
        })
    })
    .transpose()
}

/// Removes ways that have lapsed, `limit` at most, and says how many. Several replicas may do it at
/// once.
///
/// # Errors
///
/// What the database said.
pub async fn remove_lapsed(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM oauth_states WHERE digest IN (
             SELECT digest FROM oauth_states WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        now,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
