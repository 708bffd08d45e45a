//! The table `gateways`: running processes, each with a lease by the database's clock. A process writes about
//! messages only while its row has not ended: each such statement locks the row `FOR KEY SHARE`, which blocks ending
//! the row, but not renewing its lease.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::GatewayId;
use mailgate_types::lease::LEASE;

/// Inserts the row of a process that starts to serve.
pub async fn begin(connection: &mut PgConnection, id: GatewayId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO gateways (id, started_at, lease_until, has_names_of_keys)
         VALUES ($1, now(), now() + make_interval(secs => $2), true)",
        id.0,
        LEASE.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Renews a lease; returns how many processes are alive, or `None` if this one was ended, and the database's clock.
pub async fn confirm(
    connection: &mut PgConnection,
    id: GatewayId,
) -> Result<(Option<usize>, DateTime<Utc>), sqlx::Error> {
    let row = sqlx::query!(
        r#"WITH confirmed AS (
               UPDATE gateways SET lease_until = now() + make_interval(secs => $2)
               WHERE id = $1 AND ended_at IS NULL
               RETURNING id
           )
           SELECT (SELECT (SELECT count(*) FROM gateways
                           WHERE ended_at IS NULL
                                 AND (lease_until > now() OR gateways.id = confirmed.id))
                   FROM confirmed) AS living, clock_timestamp() AS "clock!""#,
        id.0,
        LEASE.as_secs_f64(),
    )
    .fetch_one(connection)
    .await?;
    let living = row.living;
    let living = living.map(|living| usize::try_from(living).unwrap_or(usize::MAX));
    Ok((living, row.clock))
}

/// Ends a process's own row, so that others may take over its remaining messages immediately.
pub async fn end(connection: &mut PgConnection, id: GatewayId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE gateways SET ended_at = now()
         WHERE id = (SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR UPDATE)",
        id.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The lease ends of the other processes that have not ended.
pub async fn others(
    connection: &mut PgConnection,
    id: GatewayId,
) -> Result<Vec<(GatewayId, DateTime<Utc>)>, sqlx::Error> {
    let others = sqlx::query!(
        "SELECT id, lease_until FROM gateways WHERE ended_at IS NULL AND id <> $1",
        id.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(others
        .into_iter()
        .map(|row| (GatewayId(row.id), row.lease_until))
        .collect())
}

/// Ends the rows whose leases are unchanged and have lapsed, or are so far ahead that the database's clock must have
/// been set back; skips those whose process is writing at the moment. Returns the ended ones.
pub async fn end_lapsed(
    connection: &mut PgConnection,
    unmoved: &[(GatewayId, DateTime<Utc>)],
) -> Result<Vec<GatewayId>, sqlx::Error> {
    let ids: Vec<Uuid> = unmoved.iter().map(|(id, _)| id.0).collect();
    let untils: Vec<DateTime<Utc>> = unmoved.iter().map(|(_, until)| *until).collect();
    let ended = sqlx::query_scalar!(
        "UPDATE gateways SET ended_at = now()
         WHERE id IN (
             SELECT gateways.id FROM gateways
                    JOIN unnest($1::uuid[], $2::timestamptz[]) AS seen (id, until) USING (id)
             WHERE ended_at IS NULL AND lease_until = until
                   AND (lease_until < now() OR lease_until > now() + make_interval(secs => $3))
             FOR UPDATE OF gateways SKIP LOCKED
         )
         RETURNING id",
        &ids,
        &untils,
        LEASE.as_secs_f64(),
    )
    .fetch_all(connection)
    .await?;
    Ok(ended.into_iter().map(GatewayId).collect())
}

/// Rows that have ended, and may still own messages.
pub async fn ended(connection: &mut PgConnection) -> Result<Vec<GatewayId>, sqlx::Error> {
    let ended = sqlx::query_scalar!("SELECT id FROM gateways WHERE ended_at IS NOT NULL")
        .fetch_all(connection)
        .await?;
    Ok(ended.into_iter().map(GatewayId).collect())
}

/// Removes rows that have ended and own nothing any more.
pub async fn forget(connection: &mut PgConnection, ended: &[GatewayId]) -> Result<(), sqlx::Error> {
    let ended: Vec<Uuid> = ended.iter().map(|id| id.0).collect();
    // Open rows without a lease of their own are those owned by a process: an index range.
    sqlx::query!(
        "DELETE FROM gateways
         WHERE id = ANY($1) AND ended_at IS NOT NULL
               AND id NOT IN (SELECT gateway_id FROM spool
                              WHERE state = 'open' AND lease_until IS NULL
                                    AND gateway_id IS NOT NULL)",
        &ended,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes a row within the transaction that inserted it.
pub async fn remove(connection: &mut PgConnection, id: GatewayId) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM gateways WHERE id = $1", id.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether a row has not ended; blocks its end until the caller's transaction is over.
pub async fn is_living(connection: &mut PgConnection, id: GatewayId) -> Result<bool, sqlx::Error> {
    let living = sqlx::query_scalar!(
        "SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(living.is_some())
}
