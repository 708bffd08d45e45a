//! The tables `spool` and `spool_chunks`: messages that the gateway has accepted. The journal's statements for them,
//! one per batch, are in [`crate::database::journal`].
//! Triggers (migration 0025) maintain `spool_usage`, which quotas read: `spool_stored` counts a message that is stored
//! for a later attempt, `spool_stored_gone` removes it from the count.

pub mod backlog;
mod claim;
mod defer;
mod schedule;
pub mod usage;
pub mod waiting;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, AppVersion, CredentialId, GatewayId, LogId};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;
use mailgate_types::subscription::{SendingPermission, SubscriptionStatus, sending_permission};

pub use claim::{Claimed, Room, claim_due, claim_lapsed, claim_of_ended, in_hand_beside};
pub use defer::{Attempt, Closing, Deferral, Deferred, defer, withdraw};
pub use schedule::{lock_id, schedule};

/// A message that the gateway accepts.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The mailbox it is sent from.
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
    /// As the log shows it.
    pub metadata: Metadata,
    /// How it was submitted.
    pub door: Door,
    /// The envelope.
    pub recipients: Vec<String>,
    /// The envelope needs SMTPUTF8.
    pub smtputf8: bool,
    /// The time of the first attempt, which is also the id's.
    pub opened_at: DateTime<Utc>,
    /// The caller's idempotency key.
    pub key: Option<String>,
    /// The version of the app when its mailbox was chosen: the opening is refused if it has changed since.
    pub version: Option<AppVersion>,
}

/// Stores one piece of a deferred message; an existing one stays.
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

/// A piece of a deferred message.
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

/// Messages of one app that become due together, so that other apps' mail gets in between.
const RELEASED: i64 = 100;

/// Makes messages due that wait only for their app's subscription, if nothing suspends it any more: some of each app,
/// and the rest in later calls. The apps are found by skipping through the index, so the cost doesn't depend on how
/// many messages wait for each.
pub async fn release_waiting(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let suspended: Vec<&str> = (SubscriptionStatus::ALL.into_iter())
        .filter(|status| {
            matches!(
                sending_permission(Some(*status)),
                SendingPermission::Suspended(_)
            )
        })
        .map(SubscriptionStatus::as_str)
        .collect();
    sqlx::query!(
        "WITH RECURSIVE waiting AS (
             (SELECT app_id FROM spool WHERE awaits_subscription ORDER BY app_id LIMIT 1)
             UNION ALL
             SELECT (SELECT app_id FROM spool WHERE awaits_subscription AND app_id > waiting.app_id
                     ORDER BY app_id LIMIT 1)
             FROM waiting WHERE waiting.app_id IS NOT NULL
         ), released AS MATERIALIZED (
             SELECT apps.id
             FROM waiting
                  JOIN apps ON apps.id = waiting.app_id
                  JOIN subscribers ON subscribers.id = subscriber_id
             WHERE suspended_at IS NULL AND deletion_due_at IS NULL
                   AND (subscription_status IS NULL OR subscription_status <> ALL($2)
                        OR (subscription_status = 'past_due' AND grace_ends_at > $1))
         )
         UPDATE spool SET next_attempt_at = $1, awaits_subscription = false
         WHERE id = ANY (ARRAY(
             SELECT message.id
             FROM released
                  CROSS JOIN LATERAL (
                      SELECT id FROM spool
                      WHERE app_id = released.id AND awaits_subscription AND state = 'deferred'
                      LIMIT $3
                      FOR UPDATE SKIP LOCKED
                  ) AS message
         ))",
        now,
        &suspended as &[&str],
        RELEASED,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Releases an open message that was transmitted by `left_by` at the latest; any process may claim it again after
/// `wait`.
pub async fn look_again(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
    left_by: DateTime<Utc>,
    wait: Duration,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool
         SET gateway_id = NULL, lease_until = now() + make_interval(secs => $3),
             outcome_unknown = true, left_by = $4
         FROM fence
         WHERE spool.id = $2 AND state = 'open' AND gateway_id = fence.id",
        gateway.0,
        id.0,
        wait.as_secs_f64(),
        left_by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes a process the owner of a message, whichever owned it before; `false` if the message is not in the spool.
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

/// Records that the last part of a claimed message is about to be transmitted: whatever happens to its process, the
/// provider may have it from now on. `false` if another process has taken it over.
///
/// # Errors
///
/// The database's error; the message must not be sent then.
pub async fn mark_leaving(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
    due_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let marked = sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $3 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool SET outcome_unknown = true, left_by = $4
         FROM fence
         WHERE spool.id = $1 AND state = 'open' AND gateway_id = fence.id
               AND next_attempt_at IS NOT DISTINCT FROM $2",
        id.0,
        due_at,
        gateway.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(marked.rows_affected() > 0)
}

/// Removes untrusted text from messages whose log rows the database refuses; the data for sending them is kept.
pub async fn strip(connection: &mut PgConnection, ids: &[LogId]) -> Result<(), sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "UPDATE spool SET to_address = '', cc_addresses = '{}', bcc_addresses = '{}', subject = '',
                          message_id = NULL, metadata = NULL
         WHERE id = ANY($1)",
        &ids,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns a message to the queue immediately. If its owner died, it may have been transmitted until `left_by`; nothing
/// else about it changes.
pub async fn release(
    connection: &mut PgConnection,
    gateway: GatewayId,
    claimed: &Claimed,
    now: DateTime<Utc>,
    left_by: Option<DateTime<Utc>>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $4 AND ended_at IS NULL FOR KEY SHARE
         )
         UPDATE spool
         SET state = 'deferred', next_attempt_at = $3, lease_until = NULL, gateway_id = NULL,
             left_by = coalesce($5, left_by)
         FROM fence
         WHERE spool.id = $1 AND state = 'open' AND gateway_id = fence.id
               AND next_attempt_at IS NOT DISTINCT FROM $2",
        claimed.id.0,
        claimed.due_at,
        now,
        gateway.0,
        left_by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether a message is in the spool.
pub async fn is_there(connection: &mut PgConnection, id: LogId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM spool WHERE id = $1) AS "exists!""#,
        id.0,
    )
    .fetch_one(connection)
    .await
}

/// Whether a message's raw bytes are stored.
pub async fn has_chunks(connection: &mut PgConnection, id: LogId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM spool_chunks WHERE spool_id = $1) AS "exists!""#,
        id.0,
    )
    .fetch_one(connection)
    .await
}

/// Deletes an app's waiting messages. Those being submitted at the moment end by themselves.
pub async fn delete_waiting(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM spool WHERE app_id = $1 AND state = 'deferred'",
        app.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}
