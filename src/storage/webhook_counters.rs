//! The table `webhook_counters`: delivery attempts by endpoint, hour, event and success. They are counted along with
//! the attempts' rows (`webhook_queue::record`).

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// Removes up to `limit` counters of hours before `before`; returns how many.
pub async fn remove_before(
    connection: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM webhook_counters
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM webhook_counters WHERE hour < $1 ORDER BY hour LIMIT $2
         ))",
        before,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
