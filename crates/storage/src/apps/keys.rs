//! An app's keys, and their replacement.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::signing_secrets::SealedSecrets;
use mailgate_types::ids::{AppId, SubscriberId};

/// The keys of an app and its subscriber, sealed as stored.
#[derive(Debug)]
pub struct SealedCredentials {
    /// The subscriber that owns the app.
    pub subscriber_id: SubscriberId,
    /// The subscriber's API secret.
    pub api_secret_sealed: Vec<u8>,
    /// The contract's `app_id`.
    pub slug: String,
    /// `pk_…`, in clear.
    pub pushable_key: String,
    /// The send key.
    pub send_key_sealed: Vec<u8>,
}

/// The keys of an app.
pub async fn find_credentials(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<SealedCredentials>, sqlx::Error> {
    sqlx::query_as!(
        SealedCredentials,
        "SELECT subscriber_id, api_secret_sealed, slug, pushable_key, send_key_sealed
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await
}

/// The secrets that sign webhooks to the app's `webhook_url`, sealed as stored; `None` if the app was deleted.
pub async fn find_webhook_secrets(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<SealedSecrets>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT webhook_secret_sealed, previous_webhook_secret_sealed,
                previous_webhook_secret_expires_at
         FROM apps WHERE id = $1",
        app.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| {
        SealedSecrets::new(
            row.webhook_secret_sealed,
            row.previous_webhook_secret_sealed,
            row.previous_webhook_secret_expires_at,
        )
    }))
}

/// An app's keys as they are stored.
#[derive(Debug)]
pub struct StoredKeys {
    /// `pk_…`, in clear.
    pub pushable_key: String,
    /// The send key, sealed.
    pub send_key_sealed: Vec<u8>,
    /// The webhook secret, sealed.
    pub webhook_secret_sealed: Vec<u8>,
}

/// Locks an app's row until the transaction ends, and returns its keys; `None` if the app was deleted.
pub async fn lock_keys(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<StoredKeys>, sqlx::Error> {
    sqlx::query_as!(
        StoredKeys,
        "SELECT pushable_key, send_key_sealed, webhook_secret_sealed
         FROM apps WHERE id = $1 FOR NO KEY UPDATE",
        app.0,
    )
    .fetch_optional(connection)
    .await
}

/// An app's keys; `None` if the app was deleted.
pub async fn stored_keys(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<StoredKeys>, sqlx::Error> {
    sqlx::query_as!(
        StoredKeys,
        "SELECT pushable_key, send_key_sealed, webhook_secret_sealed FROM apps WHERE id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await
}

/// Replaces the webhook secret; the previous one also signs until `expires_at`. `false` if the app was deleted.
pub async fn rotate_webhook_secret(
    connection: &mut PgConnection,
    app: AppId,
    sealed: &[u8],
    expires_at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE apps
         SET webhook_secret_sealed = $2, previous_webhook_secret_sealed = webhook_secret_sealed,
             previous_webhook_secret_expires_at = $3
         WHERE id = $1",
        app.0,
        sealed,
        expires_at,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// Replaces the send key; `false` if the app was deleted.
pub async fn replace_send_key(
    connection: &mut PgConnection,
    app: AppId,
    sealed: &[u8],
    digest: &[u8],
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE apps
         SET send_key_sealed = $2, send_key_digest = $3, send_key_renewed_at = $4,
             send_key_last_used_at = NULL
         WHERE id = $1",
        app.0,
        sealed,
        digest,
        now,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// When an app's main send key was created, and when it was last used; `None` if the app was deleted.
pub async fn send_key_times(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<(DateTime<Utc>, Option<DateTime<Utc>>)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT coalesce(send_key_renewed_at, created_at) AS "created_at!", send_key_last_used_at
           FROM apps WHERE id = $1"#,
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.created_at, row.send_key_last_used_at)))
}

/// Replaces the pushable key; `false` if the app was deleted.
pub async fn replace_pushable_key(
    connection: &mut PgConnection,
    app: AppId,
    pushable_key: &str,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE apps SET pushable_key = $2 WHERE id = $1",
        app.0,
        pushable_key,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}
