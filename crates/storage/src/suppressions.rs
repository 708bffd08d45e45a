//! The table `suppressions`: recipients that have bounced permanently, by app.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, LogId};
use mailgate_types::past::Past;

/// A recipient that has bounced permanently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The address, as its comparison key.
    pub address: String,
    /// The message that bounced last.
    pub log: LogId,
    /// When that bounce was read.
    pub bounced_at: DateTime<Utc>,
}

/// Records recipients that have bounced, within the caller's transaction.
pub async fn note(
    connection: &mut PgConnection,
    app: AppId,
    bounced: &[(String, LogId)],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let addresses: Vec<&str> = bounced
        .iter()
        .map(|(address, _)| address.as_str())
        .collect();
    let logs: Vec<Uuid> = bounced.iter().map(|(_, log)| log.0).collect();
    // In the same order in every process, so that they can't deadlock.
    sqlx::query!(
        "INSERT INTO suppressions AS known (app_id, address, log_id, bounced_at)
         SELECT DISTINCT ON (address) $1::uuid, address, log_id, $4::timestamptz
         FROM unnest($2::text[], $3::uuid[]) AS bounced (address, log_id)
         ORDER BY address, log_id DESC
         ON CONFLICT (app_id, address) DO UPDATE
         SET log_id = EXCLUDED.log_id, bounced_at = EXCLUDED.bounced_at
         WHERE known.bounced_at <= EXCLUDED.bounced_at",
        app.0,
        &addresses as &[&str],
        &logs,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The recipients of an app among these that have bounced since a given time. The addresses are in lower case.
pub async fn of_recipients(
    connection: &mut PgConnection,
    app: AppId,
    addresses: &[String],
    since: DateTime<Utc>,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT address FROM suppressions
         WHERE app_id = $1 AND address = ANY($2) AND bounced_at > $3",
        app.0,
        addresses,
        since,
    )
    .fetch_all(connection)
    .await
}

/// An app's suppressed recipients, or the one with this address; the last to bounce first.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
    address: Option<&str>,
    since: DateTime<Utc>,
    limit: i64,
    offset: i64,
) -> Result<Vec<Suppression>, sqlx::Error> {
    sqlx::query_as!(
        Suppression,
        "SELECT address, log_id AS log, bounced_at FROM suppressions
         WHERE app_id = $1 AND ($2::text IS NULL OR address = $2) AND bounced_at > $3
         ORDER BY bounced_at DESC, address DESC LIMIT $4 OFFSET $5",
        app.0,
        address,
        since,
        limit,
        offset,
    )
    .fetch_all(connection)
    .await
}

/// The number of entries of [`list`].
pub async fn count(
    connection: &mut PgConnection,
    app: AppId,
    address: Option<&str>,
    since: DateTime<Utc>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM suppressions
           WHERE app_id = $1 AND ($2::text IS NULL OR address = $2) AND bounced_at > $3"#,
        app.0,
        address,
        since,
    )
    .fetch_one(connection)
    .await
}

/// Deletes an app's suppressions, or the one of an address; returns how many of them were still in force. They are
/// locked in the order of [`note`].
pub async fn delete(
    connection: &mut PgConnection,
    app: AppId,
    address: Option<&str>,
    since: DateTime<Utc>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH deleted AS (
               DELETE FROM suppressions
               WHERE app_id = $1 AND address = ANY(ARRAY(
                   SELECT address FROM suppressions
                   WHERE app_id = $1 AND ($2::text IS NULL OR address = $2)
                   ORDER BY address FOR UPDATE
               ))
               RETURNING bounced_at
           )
           SELECT count(*) AS "count!" FROM deleted WHERE bounced_at > $3"#,
        app.0,
        address,
        since,
    )
    .fetch_one(connection)
    .await
}

/// Removes up to `limit` suppressions from before `past`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM suppressions WHERE (app_id, address) IN (
             SELECT app_id, address FROM suppressions
             WHERE bounced_at <= $1 ORDER BY bounced_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}

/// Removes the oldest suppressions of apps that have more than `most`, up to `limit` of each; returns how many.
pub async fn forget_surplus(
    connection: &mut PgConnection,
    most: i64,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM suppressions WHERE (app_id, address) IN (
             SELECT surplus.app_id, surplus.address
             FROM (SELECT app_id, count(*) AS messages FROM suppressions
                   GROUP BY app_id HAVING count(*) > $1) AS full_one
                  CROSS JOIN LATERAL (
                      SELECT app_id, address FROM suppressions
                      WHERE app_id = full_one.app_id
                      ORDER BY bounced_at, address
                      LIMIT least(full_one.messages - $1, $2)
                      FOR UPDATE SKIP LOCKED
                  ) AS surplus
         )",
        most,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}
