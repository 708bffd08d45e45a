//! Requeues a message that was delivered before.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::CHANNEL;
use mailgate_types::ids::{AppId, EndpointId, WebhookMessageId};

/// The result of a request to deliver a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeued {
    /// It is due now, as the attempt with this number.
    Due(i32),
    /// It is being delivered at the moment.
    InFlight,
    /// A replay of the endpoint is being queued at the moment.
    Replaying,
    /// Its body has expired.
    Gone,
}

/// Queues a message for an endpoint again, due immediately: with the number of attempts made so far or, if it is
/// still waiting for its next attempt, by making it due. Within the caller's transaction.
pub async fn requeue(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
    message: WebhookMessageId,
    now: DateTime<Utc>,
) -> Result<Requeued, sqlx::Error> {
    let is_free = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, 0)) AS "is_free!""#,
        requeuing(endpoint),
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_free {
        return Ok(Requeued::Replaying);
    }
    // One at a time, so that two requests don't count the attempts concurrently.
    sqlx::query_scalar!(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text",
        format!("webhook_queue {} {}", message.0, endpoint.0),
    )
    .fetch_one(&mut *connection)
    .await?;
    let queued = sqlx::query!(
        "SELECT state, attempts FROM webhook_queue WHERE message_id = $1 AND endpoint_id = $2
         FOR UPDATE",
        message.0,
        endpoint.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let attempts = match queued {
        Some(row) if row.state == "leased" => return Ok(Requeued::InFlight),
        Some(row) => {
            // Also one that is ready: a replay puts it after all others. Any other counts as ready from now on.
            sqlx::query!(
                "UPDATE webhook_queue
                 SET state = 'ready', due_at = CASE state WHEN 'ready' THEN least(due_at, $3) ELSE $3 END
                 WHERE message_id = $1 AND endpoint_id = $2 AND state <> 'leased'",
                message.0,
                endpoint.0,
                now,
            )
            .execute(&mut *connection)
            .await?;
            row.attempts
        }
        // A process that has just recorded an attempt and removed the row has committed by now.
        None => {
            let inserted = sqlx::query_scalar!(
                "INSERT INTO webhook_queue
                     (message_id, endpoint_id, app_id, log_id, event, url, secret_sealed, attempts,
                      due_at)
                 SELECT message.id, endpoint.id, message.app_id, log_id, event, url, secret_sealed,
                        (SELECT coalesce(max(attempt_number), 0) FROM webhook_deliveries
                         WHERE message_id = $3 AND endpoint_id = $2), $4
                 FROM webhook_messages AS message
                      CROSS JOIN (
                          SELECT id, url, secret_sealed FROM webhook_configs
                          WHERE app_id = $1 AND id = $2
                          UNION ALL
                          SELECT id, webhook_url, webhook_secret_sealed FROM apps
                          WHERE id = $1 AND id = $2 AND webhook_url <> ''
                      ) AS endpoint (id, url, secret_sealed)
                 WHERE message.app_id = $1 AND message.id = $3
                 RETURNING attempts",
                app.0,
                endpoint.0,
                message.0,
                now,
            )
            .fetch_optional(&mut *connection)
            .await?;
            let Some(attempts) = inserted else {
                return Ok(Requeued::Gone);
            };
            attempts
        }
    };
    announce(connection).await?;
    Ok(Requeued::Due(attempts + 1))
}

/// Announces new rows once the transaction commits.
pub(super) async fn announce(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("SELECT pg_notify($1, '')::text", CHANNEL)
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// The lock that is shared when single messages of an endpoint are requeued, and exclusive for a replay.
pub(super) fn requeuing(endpoint: EndpointId) -> String {
    format!("webhook_requeue {}", endpoint.0)
}

/// Whether an endpoint of an app receives events: a configuration that is active, or the app's own `webhook_url` that
/// is set. `None` if the app has no such endpoint.
pub async fn receives(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
) -> Result<Option<bool>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT is_active AS "is_active!" FROM webhook_configs WHERE app_id = $1 AND id = $2
           UNION ALL
           SELECT webhook_url <> '' FROM apps WHERE id = $1 AND id = $2"#,
        app.0,
        endpoint.0,
    )
    .fetch_optional(connection)
    .await
}
