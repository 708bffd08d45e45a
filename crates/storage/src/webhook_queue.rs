//! The table `webhook_queue`: pending deliveries. A row is ready until a process claims it; then it is leased, and
//! the process that holds the lease records the outcome of the attempt. When a lease has expired, the delivery is due
//! again.

pub mod backlog;
pub mod claim;
pub mod due;
pub mod ready;
pub mod replay;
pub mod requeue;

use std::time::Instant;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::types::Uuid;
use sqlx::{PgConnection, PgPool};

use super::signing_secrets::SealedSecrets;
use mailgate_types::ids::{
    AppId, EndpointId, LogId, SubscriberId, WebhookDeliveryId, WebhookMessageId, lowest_uuid_at,
};
use mailgate_types::past::Past;

/// The channel on which Postgres announces new rows.
const CHANNEL: &str = "webhooks";

/// Receives announcements of new rows, from this process and others.
#[derive(Debug)]
pub struct NewRows(PgListener);

impl NewRows {
    /// Starts to listen, over a connection outside the pool, which is never returned to it.
    pub async fn listen(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let own = PgPoolOptions::new().max_connections(1);
        let mut listener = PgListener::connect_with(&own.connect_lazy_with(options)).await?;
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// Waits until there may be new rows.
    pub async fn next(&mut self) -> Result<(), sqlx::Error> {
        self.0.try_recv().await.map(drop)
    }
}

/// A delivery leased by this process.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The webhook-id.
    pub message: WebhookMessageId,
    /// The endpoint to deliver to.
    pub endpoint: EndpointId,
    /// The event's app.
    pub app: AppId,
    /// The app's subscriber; `None` once it is deleted.
    pub subscriber: Option<SubscriberId>,
    /// Its log row.
    pub log: Option<LogId>,
    /// The event's name.
    pub event: String,
    /// The endpoint's current URL, or its last one if the endpoint was deleted.
    pub url: String,
    /// The endpoint's secrets, likewise.
    pub secrets: SealedSecrets,
    /// The number of recorded attempts.
    pub attempts: i32,
    /// When the lease expires, by the database's clock; identifies the claim.
    pub lease: DateTime<Utc>,
    /// When the lease expires by this process's clock, or somewhat earlier.
    pub until: Instant,
}

/// Releases leases of deliveries that were not attempted.
pub async fn release(
    connection: &mut PgConnection,
    claimed: &[Claimed],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let messages: Vec<Uuid> = claimed.iter().map(|claimed| claimed.message.0).collect();
    let endpoints: Vec<Uuid> = claimed.iter().map(|claimed| claimed.endpoint.0).collect();
    let leases: Vec<DateTime<Utc>> = claimed.iter().map(|claimed| claimed.lease).collect();
    sqlx::query!(
        "UPDATE webhook_queue AS queue SET state = 'ready', due_at = $4
         FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
                  AS released (message_id, endpoint_id, lease)
         WHERE queue.message_id = released.message_id AND queue.endpoint_id = released.endpoint_id
               AND due_at = lease",
        &messages,
        &endpoints,
        &leases,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The outcome of an attempt.
#[derive(Debug, Clone)]
pub struct Attempted {
    /// The delivery that was attempted.
    pub claimed: Claimed,
    /// The attempt's own id, which holds the time when it began.
    pub id: WebhookDeliveryId,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// How long it took.
    pub duration_ms: i64,
    /// The response status, if there was a response.
    pub http_status: Option<u16>,
    /// The beginning of the response body.
    pub response_body: String,
    /// Whether the receiver accepted it.
    pub success: bool,
    /// Why it failed.
    pub error_message: Option<String>,
    /// When to try again; `None` if this was the last attempt.
    pub next_at: Option<DateTime<Utc>>,
}

/// Records attempts: their rows, the counters, and the removal or rescheduling of the queue's rows. An attempt that has
/// lost its lease is not recorded: another process has claimed the delivery since. Returns how many were recorded.
///
/// # Errors
///
/// The database's error; nothing is written then.
pub async fn record(
    connection: &mut PgConnection,
    attempted: &[Attempted],
) -> Result<i64, sqlx::Error> {
    fn column<'a, T>(attempted: &'a [Attempted], value: impl Fn(&'a Attempted) -> T) -> Vec<T> {
        attempted.iter().map(value).collect()
    }
    let messages = column(attempted, |attempt| attempt.claimed.message.0);
    let endpoints = column(attempted, |attempt| attempt.claimed.endpoint.0);
    let leases = column(attempted, |attempt| attempt.claimed.lease);
    let ids = column(attempted, |attempt| attempt.id.0);
    let begun = column(attempted, |attempt| attempt.began_at);
    let durations = column(attempted, |attempt| attempt.duration_ms);
    let statuses = column(attempted, |attempt| attempt.http_status.map(i32::from));
    let bodies = column(attempted, |attempt| attempt.response_body.as_str());
    let successes = column(attempted, |attempt| attempt.success);
    let errors = column(attempted, |attempt| attempt.error_message.as_deref());
    let next = column(attempted, |attempt| attempt.next_at);
    let hours = column(attempted, |attempt| attempt.claimed.message.moment());
    // Row by row through the primary key, whatever the planner assumes about a table that fills and empties. A lease
    // that has expired unnoticed still counts.
    sqlx::query_scalar!(
        r#"WITH attempted AS (
               SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[],
                                    $5::timestamptz[], $6::bigint[], $7::integer[], $8::text[],
                                    $9::boolean[], $10::text[], $11::timestamptz[],
                                    $12::timestamptz[])
                   AS attempted (message_id, endpoint_id, lease, id, delivered_at, duration_ms,
                                 http_status, response_body, success, error_message, next_at,
                                 told_at)
           ), leased AS MATERIALIZED (
               SELECT attempted.*, row.ctid AS place
               FROM attempted
                    CROSS JOIN LATERAL (
                        SELECT queue.ctid FROM webhook_queue AS queue
                        WHERE queue.message_id = attempted.message_id
                              AND queue.endpoint_id = attempted.endpoint_id AND due_at = lease
                        LIMIT 1
                        FOR UPDATE
                    ) AS row
           ), ended AS (
               DELETE FROM webhook_queue AS queue USING leased
               WHERE queue.ctid = place AND next_at IS NULL
               RETURNING leased.*, app_id, log_id, event, attempts + 1 AS attempt_number
           ), put_off AS (
               UPDATE webhook_queue AS queue
               SET state = 'waiting', due_at = next_at, attempts = attempts + 1
               FROM leased
               WHERE queue.ctid = place AND next_at IS NOT NULL
               RETURNING leased.*, app_id, log_id, event, attempts AS attempt_number
           ), recorded AS (
               SELECT * FROM ended UNION ALL SELECT * FROM put_off
           ), delivered AS (
               INSERT INTO webhook_deliveries
                   (message_id, endpoint_id, attempt_number, id, app_id, log_id, event, http_status,
                    response_body, delivered_at, duration_ms, success, error_message)
               SELECT message_id, endpoint_id, attempt_number, id, app_id, log_id, event,
                      http_status, response_body, delivered_at, duration_ms, success, error_message
               FROM recorded
           ), counted AS (
               INSERT INTO webhook_counters AS counter
                   (endpoint_id, hour, event, success, app_id, deliveries)
               SELECT endpoint_id, date_trunc('hour', told_at, 'UTC'), event, success, app_id,
                      count(*)
               FROM recorded
               GROUP BY 1, 2, 3, 4, 5
               ORDER BY 1, 2, 3, 4
               ON CONFLICT (endpoint_id, hour, event, success)
               DO UPDATE SET deliveries = counter.deliveries + EXCLUDED.deliveries
           )
           SELECT count(*) AS "count!" FROM recorded"#,
        &messages,
        &endpoints,
        &leases,
        &ids,
        &begun,
        &durations,
        &statuses as &[Option<i32>],
        &bodies as &[&str],
        &successes,
        &errors as &[Option<&str>],
        &next as &[Option<DateTime<Utc>>],
        &hours as &[Option<DateTime<Utc>>],
    )
    .fetch_one(connection)
    .await
}

/// Removes up to `limit` deliveries of messages that happened before `past`; returns how many. An attempt in progress
/// is not recorded.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM webhook_queue WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM webhook_queue WHERE message_id < $1
             ORDER BY message_id LIMIT $2
         ))",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// The oldest pending message: its partition stays for as long as it may be tried.
pub async fn oldest(
    connection: &mut PgConnection,
) -> Result<Option<WebhookMessageId>, sqlx::Error> {
    let oldest =
        sqlx::query_scalar!("SELECT message_id FROM webhook_queue ORDER BY message_id LIMIT 1")
            .fetch_optional(connection)
            .await?;
    Ok(oldest.map(WebhookMessageId))
}
