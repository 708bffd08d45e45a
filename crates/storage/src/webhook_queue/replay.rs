//! Queues an endpoint's past messages again, batch by batch.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::requeue::{announce, requeuing};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, EndpointId, WebhookDeliveryId, lowest_uuid_at};

/// Selects messages of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct ReplayFilter {
    /// Of events from here on.
    pub since: DateTime<Utc>,
    /// Of events before.
    pub before: DateTime<Utc>,
    /// Whether the last attempt succeeded.
    pub success: bool,
    /// Of this event only.
    pub event: Option<EventName>,
    /// Considers only attempts from before this time.
    pub as_of: DateTime<Utc>,
}

/// The result of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Attempts that were examined.
    pub examined: i64,
    /// The last attempt that was processed.
    pub last: Option<WebhookDeliveryId>,
    /// Whether it ended at a message for which there was no room.
    pub is_full: bool,
    /// Messages that were queued.
    pub queued: i64,
    /// Messages that are queued already, or in flight.
    pub skipped: i64,
    /// Messages whose body has expired.
    pub expired: i64,
}

/// Begins a replay of an endpoint within the caller's transaction, which blocks other requeues of its messages until it
/// ends; `false` if another replay of it is in progress.
pub async fn begin(
    connection: &mut PgConnection,
    endpoint: EndpointId,
) -> Result<bool, sqlx::Error> {
    let is_alone = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS "is_alone!""#,
        format!("webhook_replay {}", endpoint.0),
    )
    .fetch_one(&mut *connection)
    .await?;
    if is_alone {
        // Transactions that requeue single messages commit within milliseconds.
        sqlx::query_scalar!(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text",
            requeuing(endpoint),
        )
        .fetch_one(connection)
        .await?;
    }
    Ok(is_alone)
}

/// The waiting deliveries to an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub count: i64,
    /// When the first of them is attempted; a time in the past is as soon as there is room.
    pub next: Option<DateTime<Utc>>,
}

/// The waiting deliveries to an endpoint, ready or until their next attempt; each counted up to `most`.
pub async fn waiting(
    connection: &mut PgConnection,
    endpoint: EndpointId,
    most: i64,
) -> Result<Waiting, sqlx::Error> {
    sqlx::query_as!(
        Waiting,
        r#"SELECT count(*) AS "count!", min(due_at) AS next
           FROM ((SELECT due_at FROM webhook_queue WHERE endpoint_id = $1 AND state = 'ready' LIMIT $2)
                 UNION ALL
                 (SELECT due_at FROM webhook_queue WHERE endpoint_id = $1 AND state = 'waiting' LIMIT $2)) AS waiting"#,
        endpoint.0,
        most,
    )
    .fetch_one(connection)
    .await
}

/// Leases and waiting retries examined for a replay's progress.
const MOST_LATER: i64 = 10_000;

/// How many messages of the replay that `began` then haven't been attempted since: those due after `from`, up to
/// `until`, as [`batch`] has queued them, and those that are leased.
pub async fn left(
    connection: &mut PgConnection,
    endpoint: EndpointId,
    began: DateTime<Utc>,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    most: i64,
) -> Result<i64, sqlx::Error> {
    // A lease no longer says what it was queued by; new events aren't among those of before.
    sqlx::query_scalar!(
        r#"SELECT (SELECT count(*) FROM (
                       SELECT FROM webhook_queue
                       WHERE endpoint_id = $1 AND state = 'ready' AND due_at > $2 AND due_at <= $3 LIMIT $4
                   ) AS ready)
                  + (SELECT count(*) FROM (
                         SELECT endpoint_id, state, attempts, message_id FROM webhook_queue
                         WHERE state <> 'ready' AND due_at > now() ORDER BY due_at LIMIT $6
                     ) AS later
                     WHERE endpoint_id = $1 AND state = 'leased' AND attempts > 0 AND message_id < $5)
                  AS "count!""#,
        endpoint.0,
        from,
        until,
        most,
        lowest_uuid_at(began),
        MOST_LATER,
    )
    .fetch_one(connection)
    .await
}

/// One statement for each outcome, since failures have an index of their own. Everything is looked up row by row
/// through the keys, whatever the planner assumes.
macro_rules! replay_batch {
    ($outcome:tt, $($argument:expr),* $(,)?) => {
        sqlx::query!(
            r#"WITH looked AS MATERIALIZED (
                   SELECT id, message_id, attempt_number, event
                   FROM webhook_deliveries
                   WHERE endpoint_id = $2 AND "# + $outcome + r#" AND id > $3 AND id < $4
                         AND message_id >= $5 AND message_id < $6
                   ORDER BY id LIMIT $7
               ), judged AS MATERIALIZED (
                   SELECT looked.*, message.log_id, message.id IS NOT NULL AS is_kept,
                          queued.is_queued IS NOT NULL AS is_queued
                   FROM looked
                        LEFT JOIN LATERAL (
                            SELECT kept.id, kept.log_id FROM webhook_messages AS kept
                            WHERE kept.app_id = $1 AND kept.id = looked.message_id LIMIT 1
                        ) AS message ON true
                        LEFT JOIN LATERAL (
                            SELECT true AS is_queued FROM webhook_queue AS queue
                            WHERE queue.message_id = looked.message_id AND queue.endpoint_id = $2
                            LIMIT 1
                        ) AS queued ON true
                   WHERE event <> 'test' AND ($8::text IS NULL OR event = $8)
                         AND attempt_number = (
                             SELECT max(latest.attempt_number) FROM webhook_deliveries AS latest
                             WHERE latest.message_id = looked.message_id AND latest.endpoint_id = $2
                         )
               ), ranked AS MATERIALIZED (
                   SELECT judged.*,
                          count(*) FILTER (WHERE is_kept AND NOT is_queued) OVER (ORDER BY id) AS rank
                   FROM judged
               ), queued AS (
                   INSERT INTO webhook_queue
                       (message_id, endpoint_id, app_id, log_id, event, url, secret_sealed,
                        attempts, due_at)
                   SELECT message_id, $2, $1, log_id, event, url, secret_sealed, attempt_number,
                          $10::timestamptz + rank * interval '1 microsecond'
                   FROM ranked
                        CROSS JOIN (
                            SELECT url, secret_sealed FROM webhook_configs
                            WHERE app_id = $1 AND webhook_configs.id = $2
                            UNION ALL
                            SELECT webhook_url, webhook_secret_sealed FROM apps
                            WHERE apps.id = $1 AND apps.id = $2 AND webhook_url <> ''
                        ) AS endpoint (url, secret_sealed)
                   WHERE is_kept AND NOT is_queued AND rank <= $9
                   ON CONFLICT DO NOTHING
                   RETURNING message_id
               ), beyond AS (
                   SELECT id FROM ranked WHERE rank > $9 ORDER BY id LIMIT 1
               )
               SELECT (SELECT count(*) FROM looked) AS "examined!",
                      (SELECT id FROM looked
                       WHERE NOT EXISTS (SELECT FROM beyond WHERE beyond.id <= looked.id)
                       ORDER BY id DESC LIMIT 1) AS last,
                      EXISTS (SELECT FROM beyond) AS "is_full!",
                      (SELECT count(*) FROM queued) AS "queued!",
                      (SELECT count(*) FROM ranked WHERE rank <= $9 AND is_queued) AS "skipped!",
                      (SELECT count(*) FROM ranked
                       WHERE rank <= $9 AND NOT is_kept AND NOT is_queued) AS "expired!""#,
            $($argument),*
        )
    };
}

/// Queues up to `room` messages, looking at up to `limit` attempts that came after `after`, in the order of the
/// attempts. The messages are due from `due_at` on, and ready already: whatever is due earlier precedes them.
#[expect(clippy::too_many_arguments, reason = "one statement")]
pub async fn batch(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
    filter: ReplayFilter,
    after: Option<WebhookDeliveryId>,
    limit: i64,
    room: i64,
    due_at: DateTime<Utc>,
) -> Result<Batch, sqlx::Error> {
    let after = after.map_or(Uuid::nil(), |after| after.0);
    let (first, before) = (lowest_uuid_at(filter.since), lowest_uuid_at(filter.before));
    // No attempt is older than its message.
    let after = after.max(Uuid::from_u128(first.as_u128().saturating_sub(1)));
    let as_of = lowest_uuid_at(filter.as_of);
    let event = filter.event.map(EventName::as_str);
    macro_rules! fetch {
        ($outcome:tt) => {{
            let row = replay_batch!(
                $outcome, app.0, endpoint.0, after, as_of, first, before, limit, event, room,
                due_at,
            )
            .fetch_one(&mut *connection)
            .await?;
            Batch {
                examined: row.examined,
                last: row.last.map(WebhookDeliveryId),
                is_full: row.is_full,
                queued: row.queued,
                skipped: row.skipped,
                expired: row.expired,
            }
        }};
    }
    let batch = if filter.success {
        fetch!("success")
    } else {
        fetch!("NOT success")
    };
    if batch.queued > 0 {
        announce(connection).await?;
    }
    Ok(batch)
}
