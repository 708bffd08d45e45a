//! An app's keys, and their replacement.

use sqlx::PgConnection;

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
    let row = sqlx::query!(
        "SELECT subscriber_id, api_secret_sealed, slug, pushable_key, send_key_sealed
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| SealedCredentials {
        subscriber_id: SubscriberId(row.subscriber_id),
        api_secret_sealed: row.api_secret_sealed,
        slug: row.slug,
        pushable_key: row.pushable_key,
        send_key_sealed: row.send_key_sealed,
    }))
}

/// The secret that signs webhooks to the app's `webhook_url`, sealed as stored; `None` if the app is gone.
pub async fn find_webhook_secret(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT webhook_secret_sealed FROM apps WHERE id = $1",
        app.0
    )
    .fetch_optional(connection)
    .await
}

/// Replaces the webhook secret; `false` when the app is gone.
pub async fn replace_webhook_secret(
    connection: &mut PgConnection,
    app: AppId,
    sealed: &[u8],
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE apps SET webhook_secret_sealed = $2 WHERE id = $1",
        app.0,
        sealed,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// Replaces the send key; `false` when the app is gone.
pub async fn replace_send_key(
    connection: &mut PgConnection,
    app: AppId,
    sealed: &[u8],
    digest: &[u8],
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE apps SET send_key_sealed = $2, send_key_digest = $3 WHERE id = $1",
        app.0,
        sealed,
        digest,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// Replaces the pushable key; `false` when the app is gone.
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
