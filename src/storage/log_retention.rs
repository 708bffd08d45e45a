//! The table `log_retention`: how far back the log goes, in its one row.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// When the oldest day of the log begins: from then on all rows are there, before it there are none, or
/// not for long.
pub async fn kept_since(connection: &mut PgConnection) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!("SELECT kept_since FROM log_retention")
        .fetch_one(connection)
        .await
}

/// Says that the days before `since` are about to be dropped. What was dropped before doesn't come back
/// with an earlier moment.
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
