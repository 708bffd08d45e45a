//! The table `webhook_messages`: events that have listeners. An event written here is queued for each endpoint in the
//! same statement.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::event::Emission;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, LogId, WebhookMessageId, lowest_uuid_at};

/// An event before it is matched to endpoints.
#[derive(Debug)]
pub struct NewMessage {
    /// The webhook-id.
    pub id: WebhookMessageId,
    /// The event's app.
    pub app: AppId,
    /// Its name.
    pub event: EventName,
    /// Its log row.
    pub log: Option<LogId>,
    /// The exact body.
    pub body: String,
}

impl NewMessage {
    /// The message to write for an event at `at`.
    #[must_use]
    pub fn of(emission: &Emission, at: DateTime<Utc>) -> Self {
        Self {
            id: WebhookMessageId::at(at),
            app: emission.app,
            event: emission.event.name(),
            log: emission.log,
            body: emission.event.body(emission.app, at),
        }
    }
}

/// Writes events for their listeners, within the caller's transaction: the app's own `webhook_url`, and its active
/// configurations that list them. Events without listeners are not written.
pub async fn emit(
    connection: &mut PgConnection,
    emissions: &[Emission],
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    if emissions.is_empty() {
        return Ok(());
    }
    let messages: Vec<NewMessage> = emissions
        .iter()
        .map(|emission| NewMessage::of(emission, at))
        .collect();
    let messages: Vec<(&NewMessage, DateTime<Utc>)> =
        messages.iter().map(|message| (message, at)).collect();
    emit_each(connection, &messages).await
}

/// As [`emit`], each at a time of its own, since when it is ready.
pub async fn emit_each(
    connection: &mut PgConnection,
    messages: &[(&NewMessage, DateTime<Utc>)],
) -> Result<(), sqlx::Error> {
    let moments: Vec<DateTime<Utc>> = messages.iter().map(|(_, at)| *at).collect();
    let messages: Vec<&NewMessage> = messages.iter().map(|(message, _)| *message).collect();
    let ids: Vec<Uuid> = messages.iter().map(|message| message.id.0).collect();
    let apps: Vec<Uuid> = messages.iter().map(|message| message.app.0).collect();
    let events: Vec<&str> = (messages.iter())
        .map(|message| message.event.as_str())
        .collect();
    let logs: Vec<Option<Uuid>> = messages
        .iter()
        .map(|message| message.log.map(|log| log.0))
        .collect();
    let bodies: Vec<&str> = messages
        .iter()
        .map(|message| message.body.as_str())
        .collect();
    // The journal's statement ends the same way.
    sqlx::query_scalar!(
        "WITH heard AS MATERIALIZED (
               SELECT message.*, endpoints.*
               FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[],
                           $6::timestamptz[])
                        AS message (id, app_id, event, log_id, body, at)
                    JOIN LATERAL (
                        SELECT array_agg(endpoint_id) AS endpoint_ids, array_agg(url) AS urls,
                               array_agg(secret_sealed) AS secrets
                        FROM (
                            SELECT apps.id, webhook_url, webhook_secret_sealed
                            FROM apps WHERE apps.id = message.app_id AND webhook_url <> ''
                            UNION ALL
                            SELECT config.id, url, secret_sealed
                            FROM webhook_configs AS config
                            WHERE config.app_id = message.app_id AND is_active
                                  AND message.event = ANY (events)
                        ) AS endpoint (endpoint_id, url, secret_sealed)
                        HAVING count(*) > 0
                    ) AS endpoints ON true
           ), told AS (
               INSERT INTO webhook_messages (app_id, id, event, log_id, body, created_at)
               SELECT app_id, id, event, log_id, body, at FROM heard
           ), queued AS (
               INSERT INTO webhook_queue
                   (message_id, endpoint_id, app_id, log_id, event, url, secret_sealed, due_at)
               SELECT id, endpoint_id, app_id, log_id, event, url, secret_sealed, at
               FROM heard, unnest(endpoint_ids, urls, secrets)
                               AS endpoint (endpoint_id, url, secret_sealed)
           )
           SELECT pg_notify('webhooks', '')::text WHERE EXISTS (SELECT FROM heard)",
        &ids,
        &apps,
        &events as &[&str],
        &logs as &[Option<Uuid>],
        &bodies as &[&str],
        &moments,
    )
    .fetch_optional(connection)
    .await?;
    Ok(())
}

/// Withdraws, within the caller's transaction, the events about a message that counts as never accepted.
pub async fn withdraw(
    connection: &mut PgConnection,
    app: AppId,
    log: LogId,
) -> Result<(), sqlx::Error> {
    // Events about a message are younger than it, and the index is by age.
    sqlx::query!(
        "WITH withdrawn AS (
             DELETE FROM webhook_messages WHERE app_id = $1 AND log_id = $2 AND id >= $3
             RETURNING id
         )
         DELETE FROM webhook_queue USING withdrawn WHERE message_id = withdrawn.id",
        app.0,
        log.0,
        log.moment().map_or(Uuid::nil(), lowest_uuid_at),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The bodies of messages; expired ones are missing.
pub async fn bodies(
    connection: &mut PgConnection,
    messages: &[(AppId, WebhookMessageId)],
) -> Result<Vec<(WebhookMessageId, String)>, sqlx::Error> {
    let apps: Vec<Uuid> = messages.iter().map(|(app, _)| app.0).collect();
    let ids: Vec<Uuid> = messages.iter().map(|(_, id)| id.0).collect();
    // The bounds let Postgres prune partitions before the statement runs.
    let (Some(lowest), Some(highest)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    let rows = sqlx::query!(
        r#"SELECT wanted.id AS "id!", body
           FROM unnest($1::uuid[], $2::uuid[]) AS wanted (app_id, id)
                CROSS JOIN LATERAL (
                    SELECT body FROM webhook_messages AS message
                    WHERE message.app_id = wanted.app_id AND message.id = wanted.id
                          AND message.id BETWEEN $3 AND $4
                    LIMIT 1
                ) AS found"#,
        &apps,
        &ids,
        lowest,
        highest,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (WebhookMessageId(row.id), row.body))
        .collect())
}

/// The bodies of an app's messages, in their order; an expired one is `None`, and so are those beyond a total of
/// `most` bytes.
pub async fn bodies_within(
    connection: &mut PgConnection,
    app: AppId,
    messages: &[WebhookMessageId],
    most: i64,
) -> Result<Vec<Option<String>>, sqlx::Error> {
    let ids: Vec<Uuid> = messages.iter().map(|id| id.0).collect();
    // As above.
    let (Some(lowest), Some(highest)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    sqlx::query_scalar!(
        r#"SELECT CASE WHEN total <= $5 THEN body END AS body
           FROM (SELECT position, body,
                        sum(octet_length(body)) OVER (ORDER BY position) AS total
                 FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, position)
                      LEFT JOIN LATERAL (
                          SELECT body FROM webhook_messages AS message
                          WHERE message.app_id = $1 AND message.id = wanted.id
                                AND message.id BETWEEN $3 AND $4
                          LIMIT 1
                      ) AS found ON true) AS summed
           ORDER BY position"#,
        app.0,
        &ids,
        lowest,
        highest,
        most,
    )
    .fetch_all(connection)
    .await
}
