//! The table `webhook_messages`: events on their way to an app's endpoints.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::types::ids::{AppId, LogId, lowest_uuid_at};

/// An event, before it is known which endpoints it goes to.
#[derive(Debug)]
pub struct NewMessage {
    /// The webhook-id.
    pub id: Uuid,
    /// Whose event it is.
    pub app: AppId,
    /// Its name.
    pub event: &'static str,
    /// The log row that it tells of.
    pub log: Option<LogId>,
    /// The body to the byte.
    pub body: String,
}

/// Writes events for their apps' endpoints; those of an app that has none are not written.
///
/// # Errors
///
/// What the database said.
pub async fn insert(
    connection: &mut PgConnection,
    messages: &[NewMessage],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let ids: Vec<Uuid> = messages.iter().map(|message| message.id).collect();
    let apps: Vec<Uuid> = messages.iter().map(|message| message.app.0).collect();
    let events: Vec<String> = messages
        .iter()
        .map(|message| message.event.to_owned())
        .collect();
    let logs: Vec<Option<Uuid>> = messages
        .iter()
        .map(|message| message.log.map(|log| log.0))
        .collect();
    let bodies: Vec<String> = messages
        .iter()
        .map(|message| message.body.clone())
        .collect();
    sqlx::query!(
        "INSERT INTO webhook_messages
             (id, app_id, event, log_id, url, secret_sealed, body, created_at)
         SELECT message.id, app_id, event, log_id, webhook_url, webhook_secret_sealed, body, $6
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[])
                  AS message (id, app_id, event, log_id, body)
              JOIN apps ON apps.id = app_id
         WHERE webhook_url <> ''",
        &ids,
        &apps,
        &events,
        &logs as &[Option<Uuid>],
        &bodies,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes back what was to be told of a message that counts as never taken.
///
/// # Errors
///
/// What the database said.
pub async fn withdraw(
    connection: &mut PgConnection,
    app: AppId,
    log: LogId,
) -> Result<(), sqlx::Error> {
    // What tells of a message is younger than it, and the index is by age.
    sqlx::query!(
        "DELETE FROM webhook_messages WHERE app_id = $1 AND log_id = $2 AND id >= $3",
        app.0,
        log.0,
        log.moment().map_or(Uuid::nil(), lowest_uuid_at),
    )
    .execute(connection)
    .await?;
    Ok(())
}
