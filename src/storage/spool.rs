//! The tables `spool` and `spool_chunks`: messages in the gateway's hands. What the journal writes of
//! them, a batch in one statement, is in [`super::journal`].

pub mod backlog;
mod settle;
pub mod usage;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::types::ids::{AppId, CredentialId, LogId};
use crate::types::plugin::Plugin;

pub use settle::{Attempt, Closing, Deferral, Deferred, defer, withdraw};

/// A message that comes into the gateway's hands.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The mailbox it goes out from.
    pub credential: CredentialId,
    /// The mailbox's address.
    pub from_address: String,
    /// As the log shows it.
    pub to_address: String,
    /// As the log shows it.
    pub cc_addresses: Vec<String>,
    /// Recipients that no header names.
    pub bcc_addresses: Vec<String>,
    /// As the log shows it.
    pub subject: String,
    /// The provider.
    pub plugin: Plugin,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// Size of the message in bytes.
    pub size_bytes: i64,
    /// As the log shows it.
    pub has_attachments: bool,
    /// The envelope.
    pub recipients: Vec<String>,
    /// The envelope needs SMTPUTF8.
    pub smtputf8: bool,
    /// The first attempt's moment: the id's own time.
    pub opened_at: DateTime<Utc>,
    /// The message counts as abandoned past it.
    pub lease_until: DateTime<Utc>,
}

/// A spool row that a worker has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The mailbox it goes out from.
    pub credential: CredentialId,
    /// The provider.
    pub plugin: Plugin,
    /// The mailbox's address.
    pub from_address: String,
    /// As the log shows it.
    pub to_address: String,
    /// As the log shows it.
    pub subject: String,
    /// The envelope.
    pub recipients: Vec<String>,
    /// The envelope needs SMTPUTF8.
    pub smtputf8: bool,
    /// Attempts that have failed so far.
    pub attempts: i32,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// It may be at the provider already.
    pub outcome_unknown: bool,
    /// When the gateway took it.
    pub opened_at: DateTime<Utc>,
    /// Size of the message in bytes.
    pub size_bytes: i64,
    /// For when it was due; each deferral changes it, so that a claim that others have taken over is
    /// known by it. `None` before the first.
    pub due_at: Option<DateTime<Utc>>,
}

/// A claimed row as it lies there.
struct ClaimedRow {
    id: Uuid,
    app_id: Uuid,
    credential_id: Uuid,
    plugin: String,
    from_address: String,
    to_address: String,
    subject: String,
    recipients: Vec<String>,
    smtputf8: bool,
    attempts: i32,
    message_id: Option<String>,
    outcome_unknown: bool,
    opened_at: DateTime<Utc>,
    size_bytes: i64,
    next_attempt_at: Option<DateTime<Utc>>,
}

impl TryFrom<ClaimedRow> for Claimed {
    type Error = sqlx::Error;

    fn try_from(row: ClaimedRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: LogId(row.id),
            app: AppId(row.app_id),
            credential: CredentialId(row.credential_id),
            plugin: row
                .plugin
                .parse()
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            from_address: row.from_address,
            to_address: row.to_address,
            subject: row.subject,
            recipients: row.recipients,
            smtputf8: row.smtputf8,
            attempts: row.attempts,
            message_id: row.message_id,
            outcome_unknown: row.outcome_unknown,
            opened_at: row.opened_at,
            size_bytes: row.size_bytes,
            due_at: row.next_attempt_at,
        })
    }
}

/// Stores one piece of a deferred message; one that is there stays.
///
/// # Errors
///
/// What the database said.
pub async fn add_chunk(
    connection: &mut PgConnection,
    id: LogId,
    position: i32,
    content: &[u8],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO spool_chunks (spool_id, position, content) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING",
        id.0,
        position,
        content,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The next piece of a deferred message.
///
/// # Errors
///
/// What the database said.
pub async fn chunk(
    connection: &mut PgConnection,
    id: LogId,
    position: i32,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT content FROM spool_chunks WHERE spool_id = $1 AND position = $2",
        id.0,
        position,
    )
    .fetch_optional(connection)
    .await
}

/// Claims up to `limit` deferred messages that are due, oldest first, for whoever calls until
/// `lease_until`, but for those that the caller works on already. A claimed row is `open`: its holder's
/// death is noticed like any other's.
///
/// # Errors
///
/// What the database said.
pub async fn claim_due(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    held: &[LogId],
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let rows = sqlx::query_as!(
        ClaimedRow,
        "UPDATE spool SET state = 'open', lease_until = $2
         WHERE id IN (
             SELECT id FROM spool
             WHERE state = 'deferred' AND next_attempt_at <= $1 AND id <> ALL($4)
             ORDER BY next_attempt_at
             LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         RETURNING id, app_id, credential_id, plugin, from_address, to_address, subject, recipients,
                   smtputf8, attempts, message_id, outcome_unknown, opened_at,
                   size_bytes, next_attempt_at",
        now,
        lease_until,
        limit,
        &held,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// Claims up to `limit` messages whose holder has died, for whoever calls until `lease_until`, but for
/// those that the caller works on itself.
///
/// # Errors
///
/// What the database said.
pub async fn claim_abandoned(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    held: &[LogId],
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let rows = sqlx::query_as!(
        ClaimedRow,
        "UPDATE spool SET lease_until = $2
         WHERE id IN (
             SELECT id FROM spool
             WHERE state = 'open' AND lease_until < $1 AND id <> ALL($4)
             ORDER BY lease_until
             LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         RETURNING id, app_id, credential_id, plugin, from_address, to_address, subject, recipients,
                   smtputf8, attempts, message_id, outcome_unknown, opened_at,
                   size_bytes, next_attempt_at",
        now,
        lease_until,
        limit,
        &held,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// Says that a claimed message is about to be submitted: whatever becomes of its process, it may be at
/// the provider from now on. `false` when others have taken it over, because its lease has lapsed.
///
/// # Errors
///
/// What the database said; the message must not be submitted then.
pub async fn mark_submitting(
    connection: &mut PgConnection,
    id: LogId,
    due_at: Option<DateTime<Utc>>,
) -> Result<bool, sqlx::Error> {
    let marked = sqlx::query!(
        "UPDATE spool SET outcome_unknown = true
         WHERE id = $1 AND state = 'open' AND next_attempt_at IS NOT DISTINCT FROM $2",
        id.0,
        due_at,
    )
    .execute(connection)
    .await?;
    Ok(marked.rows_affected() > 0)
}

/// Takes what strangers wrote out of messages whose log rows the database refuses; what they need to be sent
/// stays.
///
/// # Errors
///
/// What the database said.
pub async fn strip(connection: &mut PgConnection, ids: &[LogId]) -> Result<(), sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "UPDATE spool SET to_address = '', cc_addresses = '{}', bcc_addresses = '{}', subject = '',
                          message_id = NULL
         WHERE id = ANY($1)",
        &ids,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Puts a message whose process died back into the queue, at once; nothing of it is changed but that.
///
/// # Errors
///
/// What the database said.
pub async fn put_back(
    connection: &mut PgConnection,
    id: LogId,
    due_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE spool SET state = 'deferred', next_attempt_at = $3, lease_until = NULL
         WHERE id = $1 AND state = 'open' AND next_attempt_at IS NOT DISTINCT FROM $2",
        id.0,
        due_at,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Goes on holding messages that are being worked on.
///
/// # Errors
///
/// What the database said.
pub async fn extend_leases(
    connection: &mut PgConnection,
    ids: &[LogId],
    until: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    // Whoever has a row ends the message or puts it back, with others beside it: waiting for them in
    // another order than theirs would be a circle.
    sqlx::query!(
        "WITH held AS (
             SELECT id FROM spool WHERE id = ANY($1) AND state = 'open' FOR UPDATE SKIP LOCKED
         )
         UPDATE spool SET lease_until = $2 FROM held WHERE spool.id = held.id",
        &ids,
        until,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The oldest message that is in the gateway's hands: its log row is still to be written or to change.
///
/// # Errors
///
/// What the database said.
pub async fn oldest(connection: &mut PgConnection) -> Result<Option<LogId>, sqlx::Error> {
    let id = sqlx::query_scalar!("SELECT id FROM spool ORDER BY id LIMIT 1")
        .fetch_optional(connection)
        .await?;
    Ok(id.map(LogId))
}

/// Whether a message is in the gateway's hands.
///
/// # Errors
///
/// What the database said.
pub async fn is_there(connection: &mut PgConnection, id: LogId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM spool WHERE id = $1) AS "exists!""#,
        id.0,
    )
    .fetch_one(connection)
    .await
}

/// Whether a message's raw bytes are stored.
///
/// # Errors
///
/// What the database said.
pub async fn has_chunks(connection: &mut PgConnection, id: LogId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM spool_chunks WHERE spool_id = $1) AS "exists!""#,
        id.0,
    )
    .fetch_one(connection)
    .await
}

/// Forgets the waiting messages of an app. What is being submitted at this moment ends by itself.
///
/// # Errors
///
/// What the database said.
pub async fn delete_waiting(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM spool WHERE app_id = $1 AND state = 'deferred'",
        app.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}
