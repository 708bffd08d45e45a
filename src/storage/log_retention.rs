//! The table `log_retention`: in its one row, how far back the log goes.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// The start of the oldest day in the log: all rows since then exist; earlier ones are gone, or soon will be.
pub async fn kept_since(connection: &mut PgConnection) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!("SELECT kept_since FROM log_retention")
        .fetch_one(connection)
        .await
}

/// Records that the days before `since` are about to be dropped. An earlier time has no effect: what was dropped
/// doesn't come back.
pub async fn keep_since(
    connection: &mut PgConnection,
    since: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE log_retention SET kept_since = $1 WHERE kept_since < $1",
        since,
    )
    .execute(connection)
    .await?;
    Ok(())
}
