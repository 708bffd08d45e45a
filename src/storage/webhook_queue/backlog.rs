//! How much waits in the queue, for the metrics. Each part goes by an index and looks at a bounded number
//! of its entries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// What waits.
#[derive(Debug, Clone, Copy)]
pub struct Backlog {
    /// Deliveries that whoever has a place takes, 100,000 at most.
    pub ready: u32,
    /// Deliveries that are under way or wait for their next attempt, 100,000 at most.
    pub later: u32,
    /// When the delivery was due, or will be, that is due first; of what is ready the first 1,000 endpoints
    /// are looked at.
    pub due_first: Option<DateTime<Utc>>,
}

/// Measures it.
pub async fn measure(connection: &mut PgConnection) -> Result<Backlog, sqlx::Error> {
    // In the order of an index, so that nothing else is gone through; and from endpoint to endpoint
    // through the index, whatever number of rows each of them has.
    let row = sqlx::query!(
        r#"WITH RECURSIVE endpoint AS (
               (SELECT endpoint_id, due_at FROM webhook_queue
                WHERE state = 'ready'
                ORDER BY endpoint_id, due_at LIMIT 1)
               UNION ALL
               SELECT next.endpoint_id, next.due_at
               FROM endpoint
                    CROSS JOIN LATERAL (
                        SELECT queue.endpoint_id, queue.due_at FROM webhook_queue AS queue
                        WHERE state = 'ready' AND queue.endpoint_id > endpoint.endpoint_id
                        ORDER BY queue.endpoint_id, queue.due_at LIMIT 1
                    ) AS next
           )
           SELECT (SELECT count(*) FROM (
                      SELECT FROM webhook_queue WHERE state = 'ready'
                      ORDER BY endpoint_id, due_at LIMIT 100000
                  ) AS sample) AS "ready!",
                  (SELECT count(*) FROM (
                      SELECT FROM webhook_queue WHERE state <> 'ready'
                      ORDER BY due_at LIMIT 100000
                  ) AS sample) AS "later!",
                  least(
                      (SELECT min(due_at) FROM (SELECT due_at FROM endpoint LIMIT 1000) AS sample),
                      (SELECT min(due_at) FROM webhook_queue WHERE state <> 'ready')
                  ) AS due_first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(Backlog {
        ready: u32::try_from(row.ready).unwrap_or(u32::MAX),
        later: u32::try_from(row.later).unwrap_or(u32::MAX),
        due_first: row.due_first,
    })
}
