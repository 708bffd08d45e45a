//! The length of the queue, for the metrics. Each part uses an index and reads a bounded number of its entries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::WebhookMessageId;

/// The waiting deliveries.
#[derive(Debug, Clone, Copy)]
pub struct Backlog {
    /// Deliveries that any free worker would claim now, 100,000 at most.
    pub ready: u32,
    /// Deliveries in flight or waiting for their next attempt, 100,000 at most.
    pub later: u32,
    /// The message of the oldest delivery.
    pub oldest: Option<WebhookMessageId>,
    /// When the first delivery was or will be due; among ready ones, the first 1,000 endpoints are read.
    pub due_first: Option<DateTime<Utc>>,
}

/// Measures the queue.
pub async fn measure(connection: &mut PgConnection) -> Result<Backlog, sqlx::Error> {
    // In index order, so that nothing else is scanned; and skipping from endpoint to endpoint through the index,
    // however many rows each of them has.
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
                  (SELECT message_id FROM webhook_queue ORDER BY message_id LIMIT 1) AS oldest,
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
        oldest: row.oldest.map(WebhookMessageId),
        due_first: row.due_first,
    })
}
