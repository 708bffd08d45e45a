//! When keys were last used. Rows that are locked at the moment are skipped: the next use is written again.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

/// Keys of one table, each with the time of its use.
#[derive(Debug, Default)]
pub struct Uses {
    /// Their ids.
    pub ids: Vec<Uuid>,
    /// The times.
    pub at: Vec<DateTime<Utc>>,
}

/// For the apps' main send keys, by app. A use before the key was renewed belongs to the old one.
pub async fn write_apps(connection: &mut PgConnection, uses: &Uses) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH free AS MATERIALIZED (
             SELECT apps.id, used.at FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, at)
             JOIN apps ON apps.id = used.id
             WHERE at >= coalesce(send_key_renewed_at, created_at)
                   AND (send_key_last_used_at IS NULL OR send_key_last_used_at < at)
             FOR NO KEY UPDATE OF apps SKIP LOCKED
         )
         UPDATE apps SET send_key_last_used_at = free.at FROM free WHERE apps.id = free.id",
        &uses.ids,
        &uses.at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Of additional send keys.
pub async fn write_send_keys(
    connection: &mut PgConnection,
    uses: &Uses,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH free AS MATERIALIZED (
             SELECT key.id, used.at FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, at)
             JOIN send_keys AS key ON key.id = used.id
             WHERE last_used_at IS NULL OR last_used_at < at
             FOR NO KEY UPDATE OF key SKIP LOCKED
         )
         UPDATE send_keys SET last_used_at = free.at FROM free WHERE send_keys.id = free.id",
        &uses.ids,
        &uses.at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Of additional API secrets.
pub async fn write_api_secrets(
    connection: &mut PgConnection,
    uses: &Uses,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH free AS MATERIALIZED (
             SELECT key.id, used.at FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, at)
             JOIN api_secrets AS key ON key.id = used.id
             WHERE last_used_at IS NULL OR last_used_at < at
             FOR NO KEY UPDATE OF key SKIP LOCKED
         )
         UPDATE api_secrets SET last_used_at = free.at FROM free WHERE api_secrets.id = free.id",
        &uses.ids,
        &uses.at,
    )
    .execute(connection)
    .await?;
    Ok(())
}
