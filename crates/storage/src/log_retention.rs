//! The table `log_retention`: in its one row, how far back the log goes.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::past::Past;

/// The start of the oldest day in the log: all rows since then exist; earlier ones are gone, or soon will be.
pub async fn kept_since(connection: &mut PgConnection) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!("SELECT kept_since FROM log_retention")
        .fetch_one(connection)
        .await
}

/// Records that the days before `past` are about to be dropped. An earlier time has no effect: what was dropped
/// doesn't come back.
pub async fn keep_since(connection: &mut PgConnection, past: Past) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE log_retention SET kept_since = $1 WHERE kept_since < $1",
        past.moment(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Sets the start of the oldest day back to `since` if it lies behind; returns where it was.
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
