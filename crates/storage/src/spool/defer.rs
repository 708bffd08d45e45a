//! Defers a message to its next attempt, with the log row and the attempt that record it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, GatewayId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// An attempt that took place.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Its number, counted from 1.
    pub number: i32,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub milliseconds: i64,
}

/// The end of a message.
#[derive(Debug, Clone)]
pub struct Closing {
    /// The message.
    pub id: LogId,
    /// `Sent` or `FailedPerm`.
    pub status: LogStatus,
    /// Why it failed.
    pub error_message: Option<String>,
    /// The Message-ID that the provider assigned in place of the message's own.
    pub message_id: Option<String>,
    /// The attempt that ended it; `None` if its process died.
    pub attempt: Option<Attempt>,
}

/// A message that will be retried.
#[derive(Debug, Clone)]
pub struct Deferral {
    /// The message.
    pub id: LogId,
    /// Attempts that have failed so far.
    pub attempts: i32,
    /// Why the last one failed.
    pub error_message: String,
    /// When to try again.
    pub next_attempt_at: DateTime<Utc>,
    /// If the provider may already have it: the latest time of its transmission.
    pub left_by: Option<DateTime<Utc>>,
    /// It waits only for its app's subscription.
    pub awaits_subscription: bool,
    /// It waits only for its mailbox's turn.
    pub awaits_pace: bool,
    /// The attempt that failed; `None` if there was none.
    pub attempt: Option<Attempt>,
    /// When the message was due when it was claimed; `None` the first time.
    pub due_at: Option<DateTime<Utc>>,
}

/// Stores a message for its next attempt and shows it as `failed_temp` in the log. The first time, its raw bytes
/// follow through [`super::add_chunk`]. `None` if the message is no longer the caller's: this was written before, or
/// its process has ended.
pub async fn defer(
    connection: &mut PgConnection,
    gateway: GatewayId,
    deferral: &Deferral,
) -> Result<Option<Deferred>, sqlx::Error> {
    let attempt = deferral.attempt;
    sqlx::query_as!(
        Deferred,
        r#"WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE id = $10 AND ended_at IS NULL FOR KEY SHARE
         ), kept AS (
             UPDATE spool
             SET state = 'deferred', attempts = $2, next_attempt_at = $4, lease_until = NULL,
                 gateway_id = NULL, outcome_unknown = $5::timestamptz IS NOT NULL, left_by = $5,
                 is_logged = true, awaits_subscription = $11, awaits_pace = $12
             FROM (SELECT spool.id, is_logged AS was_logged FROM fence, spool
                   WHERE spool.id = $1 AND state = 'open' AND gateway_id = fence.id
                         AND next_attempt_at IS NOT DISTINCT FROM $9
                   FOR UPDATE OF spool) AS before
             WHERE spool.id = before.id
             RETURNING spool.*, was_logged
         ), attempted AS (
             INSERT INTO email_attempts (log_id, number, at, duration_ms, status, error_message)
             SELECT id, $6, $7, $8, 'failed_temp', $3
             FROM kept
             WHERE $6::integer IS NOT NULL
                   AND opened_at >= (SELECT kept_since FROM log_retention)
             ON CONFLICT DO NOTHING
         ), logged AS (
             INSERT INTO email_logs
                 (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                  subject, plugin, status, error_message, message_id, size_bytes, has_attachments,
                  sent_at, metadata, door, subscriber_id)
             SELECT id, app_id, credential_id, from_address, to_address, cc_addresses,
                    bcc_addresses, subject, plugin, 'failed_temp', $3, message_id, size_bytes,
                    has_attachments, opened_at, metadata, door,
                    (SELECT subscriber_id FROM apps WHERE apps.id = app_id)
             FROM kept
             WHERE opened_at >= (SELECT kept_since FROM log_retention)
             ON CONFLICT (id) DO UPDATE
             SET error_message = EXCLUDED.error_message,
                 metadata = coalesce(EXCLUDED.metadata, email_logs.metadata)
         )
         SELECT app_id AS app, plugin AS "plugin: Plugin", opened_at, NOT was_logged AS "is_first!" FROM kept"#,
        deferral.id.0,
        deferral.attempts,
        deferral.error_message,
        deferral.next_attempt_at,
        deferral.left_by,
        attempt.map(|attempt| attempt.number),
        attempt.map(|attempt| attempt.at),
        attempt.map(|attempt| attempt.milliseconds),
        deferral.due_at,
        gateway.0,
        deferral.awaits_subscription,
        deferral.awaits_pace,
    )
    .fetch_optional(connection)
    .await
}

/// A message that was deferred.
#[derive(Debug, Clone, Copy)]
pub struct Deferred {
    /// Its app.
    pub app: AppId,
    /// Its mailbox's provider.
    pub plugin: Plugin,
    /// The time of its first attempt.
    pub opened_at: DateTime<Utc>,
    /// Whether the log did not have it before.
    pub is_first: bool,
}

/// Deletes a message that was never acknowledged to its sender; returns it, if it was in the spool and no process is
/// working on it.
pub async fn withdraw(
    connection: &mut PgConnection,
    gateway: GatewayId,
    id: LogId,
) -> Result<Option<Deferred>, sqlx::Error> {
    sqlx::query_as!(
        Deferred,
        r#"WITH taken AS (
               DELETE FROM spool
               WHERE id = $1 AND (state = 'deferred' OR NOT is_logged AND gateway_id = $2)
               RETURNING id, app_id, plugin, opened_at, is_logged
           ), unlogged AS (
               DELETE FROM email_logs USING taken WHERE email_logs.id = taken.id
           ), forgotten AS (
               DELETE FROM email_attempts USING taken WHERE log_id = taken.id
           )
           SELECT app_id AS app, plugin AS "plugin: Plugin", opened_at, NOT is_logged AS "is_first!" FROM taken"#,
        id.0,
        gateway.0,
    )
    .fetch_optional(connection)
    .await
}
