//! What the database says at the end.

use std::collections::HashMap;

use mailgate_types::ids::LogId;
use serde_json::Value;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

/// A row of the log.
#[derive(Debug, Clone, FromRow)]
pub struct LogRow {
    pub id: Uuid,
    pub app_id: Uuid,
    pub status: String,
    pub error_message: Option<String>,
    pub from_address: String,
    pub to_address: String,
    pub subject: String,
    pub plugin: String,
    pub message_id: Option<String>,
}

/// A row of the spool, with the pieces of its message.
#[derive(Debug, Clone, FromRow)]
pub struct SpoolRow {
    pub id: Uuid,
    pub state: String,
    pub attempts: i32,
    pub is_held: bool,
    pub is_logged: bool,
    pub outcome_unknown: bool,
    pub size_bytes: i64,
    pub pieces: i64,
    pub last_piece: Option<i32>,
    pub content: Option<Vec<u8>>,
}

/// An attempt of a message that did not leave at the first one.
#[derive(Debug, Clone, FromRow)]
pub struct AttemptRow {
    pub log_id: Uuid,
    pub number: i32,
    pub status: String,
    pub error_message: Option<String>,
}

/// An event for the app's endpoint.
#[derive(Debug, Clone, FromRow)]
pub struct EventRow {
    pub app_id: Uuid,
    pub event: String,
    pub log_id: Option<Uuid>,
    pub body: String,
}

/// A key, and the answer under it.
#[derive(Debug, Clone, FromRow)]
pub struct KeyRow {
    pub log_id: Uuid,
    pub answer: Option<Value>,
}

/// All of it.
pub struct Tables {
    pub logs: HashMap<Uuid, LogRow>,
    pub spool: HashMap<Uuid, SpoolRow>,
    /// In order.
    pub attempts: Vec<AttemptRow>,
    pub events: Vec<EventRow>,
    pub keys: HashMap<String, KeyRow>,
    /// Counters that don't say what the log says.
    pub wrong_counters: Vec<String>,
    /// Webhook messages that are neither queued nor were attempted, or that were attempted without a count.
    pub wrong_webhooks: Vec<String>,
}

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

impl LogRow {
    pub fn shown_id(&self) -> String {
        LogId(self.id).to_string()
    }

    /// The message may have arrived, nobody can tell, and it was not sent again.
    pub fn is_unverifiable(&self) -> bool {
        self.status == "failed_perm" && self.error().contains("it may have arrived")
    }

    pub fn is_cancelled(&self) -> bool {
        self.status == "failed_perm" && self.error() == "Cancelled"
    }

    pub fn error(&self) -> &str {
        self.error_message.as_deref().unwrap_or_default()
    }
}
