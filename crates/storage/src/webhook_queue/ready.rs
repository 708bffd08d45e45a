//! The endpoints with ready deliveries. While a snapshot is held anywhere in the database, the indexes keep an entry
//! for each delivery since. So frequent queries begin at a point in time, and only [`all`] reads everything.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::EndpointId;

/// The oldest ready delivery of an endpoint in one of its two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Whether it is among the replayed deliveries, which are due in a day and yield to all others.
    pub is_behind: bool,
    /// When it was or will be due.
    pub due_at: DateTime<Utc>,
}

/// The deliveries that count as newly ready.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Due from here on.
    pub since: DateTime<Utc>,
    /// Replayed ones: due from here on, which isn't before `ahead`.
    pub behind_since: DateTime<Utc>,
    /// Deliveries due from here on are replayed ones.
    pub ahead: DateTime<Utc>,
    /// No replayed delivery is due from here on, unless a clock was set back.
    pub behind_before: DateTime<Utc>,
}

/// The endpoints with deliveries that became ready within a window, and the oldest of these. A delivery that becomes
/// ready is due at that time, or [`Ready::is_behind`].
pub async fn arrived(
    connection: &mut PgConnection,
    window: Window,
) -> Result<Vec<Ready>, sqlx::Error> {
    // In the order of the intended index, which makes it the cheapest even while the table is empty.
    sqlx::query_as!(
        Ready,
        r#"SELECT endpoint_id AS "endpoint!", is_behind AS "is_behind!", min(due_at) AS "due_at!"
           FROM (
               (SELECT endpoint_id, due_at, false AS is_behind FROM webhook_queue
                WHERE state = 'ready' AND attempts >= 0 AND due_at >= $1 AND due_at < $2
                ORDER BY due_at)
               UNION ALL
               (SELECT endpoint_id, due_at, true FROM webhook_queue
                WHERE state = 'ready' AND attempts >= 0 AND due_at >= $3 AND due_at < $4
                ORDER BY due_at)
           ) AS arrived
           GROUP BY endpoint_id, is_behind"#,
        window.since,
        window.ahead,
        window.behind_since,
        window.behind_before,
    )
    .fetch_all(connection)
    .await
}

/// Up to `limit` endpoints with ready deliveries, in id order, starting after `after`. Reads all entries of the index
/// up to there, dead ones too.
pub async fn all(
    connection: &mut PgConnection,
    after: EndpointId,
    limit: i64,
    ahead: DateTime<Utc>,
) -> Result<Vec<(EndpointId, Vec<Ready>)>, sqlx::Error> {
    // Skips from endpoint to endpoint through the index, however many ready rows each of them has.
    let rows = sqlx::query!(
        r#"WITH RECURSIVE ready AS (
               (SELECT endpoint_id, due_at FROM webhook_queue
                WHERE state = 'ready' AND endpoint_id > $1
                ORDER BY endpoint_id, due_at LIMIT 1)
               UNION ALL
               SELECT next.endpoint_id, next.due_at
               FROM ready
                    CROSS JOIN LATERAL (
                        SELECT queue.endpoint_id, queue.due_at FROM webhook_queue AS queue
                        WHERE state = 'ready' AND queue.endpoint_id > ready.endpoint_id
                        ORDER BY queue.endpoint_id, queue.due_at LIMIT 1
                    ) AS next
           )
           SELECT endpoint_id AS "endpoint_id!", due_at AS "due_at!",
                  (SELECT queue.due_at FROM webhook_queue AS queue
                   WHERE state = 'ready' AND queue.endpoint_id = ready.endpoint_id
                         AND queue.due_at >= $3
                   ORDER BY queue.due_at LIMIT 1) AS behind
           FROM ready LIMIT $2"#,
        after.0,
        limit,
        ahead,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let endpoint = EndpointId(row.endpoint_id);
            let of = |is_behind, due_at| Ready {
                endpoint,
                is_behind,
                due_at,
            };
            let first = (row.due_at < ahead).then(|| of(false, row.due_at));
            let behind = row.behind.map(|due_at| of(true, due_at));
            (endpoint, first.into_iter().chain(behind).collect())
        })
        .collect())
}
