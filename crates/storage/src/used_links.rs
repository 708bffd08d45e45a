//! The table `used_links`: connect sessions and OAuth states that were used, until long after they have expired.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use mailgate_types::past::Past;

/// Marks a link as used; `false` if it already was.
pub async fn insert(
    connection: &mut PgConnection,
    id: Uuid,
    expires_at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO used_links (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        id,
        expires_at,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Stores a used link with this expiry.
pub async fn keep(
    connection: &mut PgConnection,
    id: Uuid,
    expires_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO used_links (id, expires_at) VALUES ($1, $2)
         ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at",
        id,
        expires_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether a link was used.
pub async fn exists(connection: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM used_links WHERE id = $1) AS "exists!""#,
        id,
    )
    .fetch_one(connection)
    .await
}

/// Removes links that had expired by `past`, `limit` at most of each kind, and returns how many. Several replicas may do
/// it at the same time.
pub async fn remove_lapsed(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let used = sqlx::query!(
        "DELETE FROM used_links WHERE id IN (
             SELECT id FROM used_links WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(&mut *connection)
    .await?;
    // The previous release stores every state.
    let stored = sqlx::query!(
        "DELETE FROM oauth_states WHERE digest IN (
             SELECT digest FROM oauth_states WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(used.rows_affected() + stored.rows_affected())
}
