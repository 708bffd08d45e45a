//! Leases ready deliveries, from the oldest one known of each endpoint on.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::Claimed;
use crate::signing_secrets::SealedSecrets;
use mailgate_types::ids::{AppId, EndpointId, LogId, SubscriberId, WebhookMessageId};

/// The deliveries of an endpoint to claim.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Those due from here on: no earlier one is known.
    pub from: DateTime<Utc>,
    /// Those due before; `None`: all.
    pub before: Option<DateTime<Utc>>,
    /// The maximum number.
    pub places: i64,
}

/// Leases ready deliveries for `lease`, up to a number for each endpoint, oldest first.
pub async fn claim(
    connection: &mut PgConnection,
    wanted: &[Wanted],
    lease: Duration,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let until = Instant::now() + lease;
    let Ranges {
        endpoints,
        from,
        before,
    } = Ranges::of(wanted);
    let numbers: Vec<i64> = wanted.iter().map(|wanted| wanted.places).collect();
    let rows = sqlx::query!(
        r#"WITH picked AS (
               SELECT row.ctid
               FROM unnest($1::uuid[], $2::bigint[], $4::timestamptz[], $5::timestamptz[])
                        AS wanted (endpoint_id, places, first_at, before)
                    CROSS JOIN LATERAL (
                        SELECT queue.ctid FROM webhook_queue AS queue
                        WHERE state = 'ready' AND queue.endpoint_id = wanted.endpoint_id
                              AND due_at >= first_at AND due_at < coalesce(before, 'infinity')
                        ORDER BY due_at LIMIT places
                        FOR UPDATE SKIP LOCKED
                    ) AS row
           ), claimed AS (
               UPDATE webhook_queue AS queue
               SET state = 'leased', due_at = now() + make_interval(secs => $3)
               WHERE queue.ctid = ANY (ARRAY(SELECT ctid FROM picked))
               RETURNING queue.*
           )
           SELECT message_id AS "message_id!", claimed.endpoint_id AS "endpoint_id!",
                  claimed.app_id AS "app_id!",
                  owner.subscriber_id AS "subscriber_id?", log_id, event AS "event!", attempts AS "attempts!",
                  due_at AS "lease!",
                  coalesce(config.url, nullif(apps.webhook_url, ''), claimed.url) AS "url!",
                  CASE WHEN config.id IS NOT NULL THEN config.secret_sealed
                       WHEN apps.id IS NOT NULL THEN apps.webhook_secret_sealed
                       ELSE coalesce(deleted.secret_sealed, claimed.secret_sealed)
                  END AS "secret_sealed!",
                  CASE WHEN config.id IS NOT NULL THEN config.previous_secret_sealed
                       WHEN apps.id IS NOT NULL THEN apps.previous_webhook_secret_sealed
                       ELSE deleted.previous_secret_sealed END AS previous_secret_sealed,
                  CASE WHEN config.id IS NOT NULL THEN config.previous_secret_expires_at
                       WHEN apps.id IS NOT NULL THEN apps.previous_webhook_secret_expires_at
                       ELSE deleted.previous_secret_expires_at END AS previous_secret_expires_at
           FROM claimed
                LEFT JOIN apps AS owner ON owner.id = claimed.app_id
                LEFT JOIN webhook_configs AS config ON config.id = claimed.endpoint_id
                LEFT JOIN apps ON apps.id = claimed.endpoint_id
                LEFT JOIN deleted_webhook_endpoints AS deleted
                       ON deleted.endpoint_id = claimed.endpoint_id
           ORDER BY message_id"#,
        &endpoints,
        &numbers,
        lease.as_secs_f64(),
        &from,
        &before as &[Option<DateTime<Utc>>],
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Claimed {
            message: WebhookMessageId(row.message_id),
            endpoint: EndpointId(row.endpoint_id),
            app: AppId(row.app_id),
            subscriber: row.subscriber_id.map(SubscriberId),
            log: row.log_id.map(LogId),
            event: row.event,
            url: row.url,
            secrets: SealedSecrets::new(
                row.secret_sealed,
                row.previous_secret_sealed,
                row.previous_secret_expires_at,
            ),
            attempts: row.attempts,
            lease: row.lease,
            until,
        })
        .collect())
}

/// The oldest delivery that is still ready in each of these ranges, in their order, whether another process has locked it
/// or not.
pub async fn left(
    connection: &mut PgConnection,
    wanted: &[Wanted],
) -> Result<Vec<Option<DateTime<Utc>>>, sqlx::Error> {
    let Ranges {
        endpoints,
        from,
        before,
    } = Ranges::of(wanted);
    sqlx::query_scalar!(
        "SELECT (SELECT due_at FROM webhook_queue AS queue
                 WHERE state = 'ready' AND queue.endpoint_id = wanted.endpoint_id
                       AND due_at >= first_at AND due_at < coalesce(before, 'infinity')
                 ORDER BY due_at LIMIT 1) AS due_at
         FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[])
                  WITH ORDINALITY AS wanted (endpoint_id, first_at, before, position)
         ORDER BY position",
        &endpoints,
        &from,
        &before as &[Option<DateTime<Utc>>],
    )
    .fetch_all(connection)
    .await
}

/// The requests, by columns.
struct Ranges {
    endpoints: Vec<Uuid>,
    from: Vec<DateTime<Utc>>,
    before: Vec<Option<DateTime<Utc>>>,
}

impl Ranges {
    fn of(wanted: &[Wanted]) -> Self {
        Self {
            endpoints: wanted.iter().map(|wanted| wanted.endpoint.0).collect(),
            from: wanted.iter().map(|wanted| wanted.from).collect(),
            before: wanted.iter().map(|wanted| wanted.before).collect(),
        }
    }
}
