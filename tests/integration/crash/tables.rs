//! What the database says at the end.

use sqlx::PgConnection;
use uuid::Uuid;

pub use crate::history::Tables;
use crate::history::{KeyRow, LogRow, SpoolRow};
use serde_json::Value;

pub async fn read(database: &mut PgConnection) -> Tables {
    let logs: Vec<LogRow> = sqlx::query_as("SELECT * FROM email_logs")
        .fetch_all(&mut *database)
        .await
        .unwrap();
    let spool: Vec<SpoolRow> = sqlx::query_as(
        "SELECT spool.*, gateway_id IS NOT NULL OR lease_until IS NOT NULL AS is_held, pieces, last_piece, content
         FROM spool, LATERAL (
             SELECT count(*) AS pieces, max(position) AS last_piece,
                    string_agg(content, ''::bytea ORDER BY position) AS content
             FROM spool_chunks WHERE spool_id = spool.id
         ) AS stored",
    )
    .fetch_all(&mut *database)
    .await
    .unwrap();
    let attempts = sqlx::query_as("SELECT * FROM email_attempts ORDER BY log_id, number")
        .fetch_all(&mut *database)
        .await
        .unwrap();
    let events = sqlx::query_as("SELECT * FROM webhook_messages WHERE event LIKE 'email.%'")
        .fetch_all(&mut *database)
        .await
        .unwrap();
    let keys: Vec<(String, Uuid, Option<Value>)> =
        sqlx::query_as("SELECT key, log_id, answer FROM idempotency_keys")
            .fetch_all(&mut *database)
            .await
            .unwrap();
    let counters = crate::support::database::COUNTED;
    let wrong_counters = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
        "SELECT concat_ws(' ', hour, plugin, status, 'counted', counted, 'logged', logged)
         FROM (SELECT app_id, hour, plugin, status, messages AS counted FROM {counters} AS counters) AS counters
              FULL JOIN
              (SELECT app_id, date_trunc('hour', sent_at, 'UTC') AS hour, plugin, status,
                      count(*) AS logged
               FROM email_logs GROUP BY 1, 2, 3, 4) AS logs
              USING (app_id, hour, plugin, status)
         WHERE coalesce(counted, 0) <> coalesce(logged, 0)"
    )))
    .fetch_all(&mut *database)
    .await
    .unwrap();
    let wrong_webhooks = sqlx::query_scalar(
        "SELECT 'neither queued nor attempted: ' || id FROM webhook_messages
         WHERE NOT EXISTS (SELECT FROM webhook_queue WHERE message_id = webhook_messages.id)
               AND NOT EXISTS (SELECT FROM webhook_deliveries
                               WHERE message_id = webhook_messages.id)
         UNION ALL
         SELECT concat_ws(' ', 'attempts', attempted, 'counted', counted)
         FROM (SELECT count(*) AS attempted FROM webhook_deliveries) AS attempts,
              (SELECT coalesce(sum(deliveries), 0) AS counted FROM webhook_counters) AS counters
         WHERE attempted <> counted",
    )
    .fetch_all(&mut *database)
    .await
    .unwrap();
    Tables {
        logs: logs.into_iter().map(|row| (row.id, row)).collect(),
        spool: spool.into_iter().map(|row| (row.id, row)).collect(),
        attempts,
        events,
        keys: (keys.into_iter())
            .map(|(key, log_id, answer)| (key, KeyRow { log_id, answer }))
            .collect(),
        wrong_counters,
        wrong_webhooks,
    }
}
