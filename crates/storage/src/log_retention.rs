//! The table `log_retention`: its one row has the start of the log.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::past::Past;

/// The start of the oldest day in the log: all rows since then exist; earlier ones are gone, or soon will be.
pub async fn kept_since(connection: &mut PgConnection) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!("SELECT kept_since FROM log_retention")
        .fetch_one(connection)
        .await
}

/// Records that the days before `past` are about to be dropped. An earlier time has no effect: dropped days can't be
/// restored.
pub async fn keep_since(connection: &mut PgConnection, past: Past) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE log_retention SET kept_since = $1 WHERE kept_since < $1",
        past.moment(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Moves the start of the oldest day back to `since` if that is earlier; returns the previous start.
pub async fn set_back(
    connection: &mut PgConnection,
    since: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"UPDATE log_retention SET kept_since = $1
           FROM (SELECT kept_since FROM log_retention FOR UPDATE) AS before
           WHERE before.kept_since > $1
           RETURNING before.kept_since AS "before!""#,
        since,
    )
    .fetch_optional(connection)
    .await
}
