//! The tables `spool` and `spool_chunks`: messages in the gateway's hands. What the journal writes of
//! them, a batch in one statement, is in [`super::journal`].

pub mod backlog;
mod settle;
pub mod usage;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::types::ids::{AppId, CredentialId, GatewayId, LogId};
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
    /// The caller's idempotency key.
    pub key: Option<String>,
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
    /// The caller's idempotency key.
    pub key: Option<String>,
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
    idempotency_key: Option<String>,
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
            key: row.idempotency_key,
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

/// Claims up to `limit` deferred messages that are due, oldest first, for a living process, but for those
/// that it works on already. A claimed row is `open`: its holder's death is noticed like any other's.
///
/// # Errors
///
/// What the database said.
pub async fn claim_due(
    connection: &mut PgConnection,
    gateway: GatewayId,
    now: DateTime<Utc>,
    held: &[LogId],
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let rows = sqlx::query_as!(
        ClaimedRow,
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $2 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool SET state = 'open', gateway_id = fence.id, lease_until = NULL
         FROM fence
         WHERE spool.id IN (
             SELECT id FROM spool
             WHERE state = 'deferred' AND next_attempt_at <= $1 AND id <> ALL($4)
             ORDER BY next_attempt_at
             LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         RETURNING spool.id, app_id, credential_id, plugin, from_address, to_address, subject,
                   recipients, smtputf8, attempts, message_id, outcome_unknown, opened_at,
                   size_bytes, next_attempt_at, idempotency_key",
        now,
        gateway.0,
        limit,
        &held,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// Claims up to `limit` messages of processes that have ended, for one that lives.
///
/// # Errors
///
/// What the database said.
pub async fn claim_of_ended(
    connection: &mut PgConnection,
    gateway: GatewayId,
    ended: &[GatewayId],
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let ended: Vec<Uuid> = ended.iter().map(|id| id.0).collect();
    let rows = sqlx::query_as!(
        ClaimedRow,
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool SET gateway_id = fence.id
         FROM fence
         WHERE spool.id IN (
             SELECT id FROM spool
             WHERE state = 'open' AND lease_until IS NULL AND gateway_id = ANY($2)
             LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         RETURNING spool.id, app_id, credential_id, plugin, from_address, to_address, subject,
                   recipients, smtputf8, attempts, message_id, outcome_unknown, opened_at,
                   size_bytes, next_attempt_at, idempotency_key",
        gateway.0,
        &ended,
        limit,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// Claims up to `limit` open messages that nobody has in hand and whose lease has lapsed, for a living
/// process: those that were put off by [`look_again`], and those of the release before.
///
/// # Errors
///
/// What the database said.
pub async fn claim_lapsed(
    connection: &mut PgConnection,
    gateway: GatewayId,
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let rows = sqlx::query_as!(
        ClaimedRow,
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool SET gateway_id = fence.id, lease_until = NULL
         FROM fence
         WHERE spool.id IN (
             SELECT id FROM spool
             WHERE state = 'open' AND lease_until < now()
             ORDER BY lease_until
             LIMIT $2
             FOR UPDATE SKIP LOCKED
         )
         RETURNING spool.id, app_id, credential_id, plugin, from_address, to_address, subject,
                   recipients, smtputf8, attempts, message_id, outcome_unknown, opened_at,
                   size_bytes, next_attempt_at, idempotency_key",
        gateway.0,
        limit,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// What a process has in hand, but for these messages.
///
/// # Errors
///
/// What the database said.
pub async fn in_hand_beside(
    connection: &mut PgConnection,
    gateway: GatewayId,
    held: &[LogId],
) -> Result<Vec<Claimed>, sqlx::Error> {
    let held: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let rows = sqlx::query_as!(
        ClaimedRow,
        "SELECT id, app_id, credential_id, plugin, from_address, to_address, subject, recipients,
                smtputf8, attempts, message_id, outcome_unknown, opened_at, size_bytes,
                next_attempt_at, idempotency_key
         FROM spool
         WHERE state = 'open' AND lease_until IS NULL AND gateway_id = $1 AND id <> ALL($2)",
        gateway.0,
        &held,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Claimed::try_from).collect()
}

/// Lets go of an open message, which is to be looked at again by anybody after `wait`.
///
/// # Errors
///
/// What the database said.
pub async fn look_again(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
    wait: Duration,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool
         SET gateway_id = NULL, lease_until = now() + make_interval(secs => $3)
         FROM fence
         WHERE spool.id = $2 AND state = 'open' AND gateway_id = fence.id",
        gateway.0,
        id.0,
        wait.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Puts a message into the hands of a process, whoever has had it; `false` where it is not there.
///
/// # Errors
///
/// What the database said.
pub async fn hand_to(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
) -> Result<bool, sqlx::Error> {
    let handed = sqlx::query!(
        "UPDATE spool
         SET state = 'open', gateway_id = $1, lease_until = NULL, next_attempt_at = NULL
         WHERE id = $2",
        gateway.0,
        id.0,
    )
    .execute(connection)
    .await?;
    Ok(handed.rows_affected() > 0)
}

/// Says that the last of a claimed message is about to leave: whatever becomes of its process, it may be at
/// the provider from now on. `false` when others have taken it over.
///
/// # Errors
///
/// What the database said; the message must not leave then.
pub async fn mark_leaving(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
    due_at: Option<DateTime<Utc>>,
) -> Result<bool, sqlx::Error> {
    let marked = sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $3 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool SET outcome_unknown = true
         FROM fence
         WHERE spool.id = $1 AND state = 'open' AND gateway_id = fence.id
               AND next_attempt_at IS NOT DISTINCT FROM $2",
        id.0,
        due_at,
        gateway.0,
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

/// Puts a message back into the queue, at once; nothing of it is changed but that.
///
/// # Errors
///
/// What the database said.
pub async fn put_back(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
    due_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $4 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool
         SET state = 'deferred', next_attempt_at = $3, lease_until = NULL, gateway_id = NULL
         FROM fence
         WHERE spool.id = $1 AND state = 'open' AND gateway_id = fence.id
               AND next_attempt_at IS NOT DISTINCT FROM $2",
        id.0,
        due_at,
        now,
        gateway.0,
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
