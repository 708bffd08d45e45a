//! The table `email_logs`. A search by recipient, Message-ID or mailbox reads [`candidates`] from an index, and
//! [`matching`] checks them; one by time and status alone is in [`search`].
//!
//! Triggers (migration 0026) maintain `email_recipients`, by which a search finds recipients besides the first:
//! `email_logs_recipients` and `email_logs_recipients_gone`.

mod by_mailbox;
pub mod candidates;
mod matching;
mod rows;
mod search;

pub use by_mailbox::{MailboxCounts, by_mailbox};
pub use matching::{Matching, matching, scan};
pub use rows::{Details, LogRow, details, list};
pub(super) use search::columns;
pub use search::{Kind, Window, count, find};

use sqlx::PgConnection;

use super::spool::Closing;
use mailgate_types::ids::{CredentialId, LogId, SubscriberId};
use mailgate_types::log_status::LogStatus;

/// The final state of a message in the log.
#[derive(Debug, Clone)]
pub struct LoggedOutcome {
    /// `sent`, `failed_temp` or `failed_perm`.
    pub status: String,
    /// The mailbox's address.
    pub from_address: String,
    /// The provider.
    pub plugin: String,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// Why it failed.
    pub error_message: Option<String>,
}

/// The final state of a message; `None` if it is not in the log yet.
pub async fn ending(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Option<LoggedOutcome>, sqlx::Error> {
    sqlx::query_as!(
        LoggedOutcome,
        "SELECT status, from_address, plugin, message_id, error_message
         FROM email_logs WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// The mailbox of a message that is in the spool or in the log.
pub async fn mailbox(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Option<CredentialId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT coalesce((SELECT credential_id FROM spool WHERE id = $1),
                         (SELECT credential_id FROM email_logs WHERE id = $1))",
        id.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(found.map(CredentialId))
}

/// The status of a message and why it failed; `None` if it is not in the log, or its app isn't the given subscriber's.
pub async fn state(
    connection: &mut PgConnection,
    subscriber: Option<SubscriberId>,
    id: LogId,
) -> Result<Option<(LogStatus, Option<String>)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT status AS "status: LogStatus", error_message
           FROM email_logs AS log JOIN apps ON apps.id = app_id
           WHERE log.id = $1 AND ($2::uuid IS NULL OR apps.subscriber_id = $2)"#,
        id.0,
        subscriber.map(|subscriber| subscriber.0),
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.status, row.error_message)))
}

/// Corrects a message that was recorded as failed to sent: its log row, the attempt of this number and the counters;
/// `false` if the log doesn't record a failure.
pub async fn correct(connection: &mut PgConnection, sent: &Closing) -> Result<bool, sqlx::Error> {
    let attempt = sent.attempt;
    let corrected = sqlx::query_scalar!(
        r#"WITH corrected AS (
             UPDATE email_logs
             SET status = 'sent', error_message = NULL, message_id = coalesce($2, message_id)
             WHERE id = $1 AND status = 'failed_perm'
             RETURNING id, app_id, plugin, sent_at
         ), attempted AS (
             INSERT INTO email_attempts (log_id, number, at, duration_ms, status)
             SELECT id, $3, $4, $5, 'sent' FROM corrected
             WHERE $3::integer > 1 OR EXISTS (SELECT FROM email_attempts WHERE log_id = $1)
             ON CONFLICT (log_id, number) DO UPDATE
             SET at = EXCLUDED.at, duration_ms = EXCLUDED.duration_ms, status = EXCLUDED.status,
                 error_message = NULL
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, date_trunc('hour', sent_at, 'UTC'), plugin, change.status, change.messages
             FROM corrected, (VALUES ('sent', 1), ('failed_perm', -1)) AS change (status, messages)
         )
         SELECT EXISTS (SELECT FROM corrected) AS "corrected!""#,
        sent.id.0,
        sent.message_id,
        attempt.map(|attempt| attempt.number),
        attempt.map(|attempt| attempt.at),
        attempt.map(|attempt| attempt.milliseconds),
    )
    .fetch_one(connection)
    .await?;
    Ok(corrected)
}

/// Replaces the error of a message that was recorded as failed without an attempt, for one of these reasons; `false` if
/// the log has no such record.
pub async fn replace_error(
    connection: &mut PgConnection,
    id: LogId,
    reasons: &[String],
    error: &str,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query!(
        "UPDATE email_logs SET error_message = $3
         WHERE id = $1 AND status = 'failed_perm' AND error_message = ANY($2)
               AND NOT EXISTS (SELECT FROM email_attempts WHERE log_id = $1)",
        id.0,
        reasons,
        error,
    )
    .execute(connection)
    .await?;
    Ok(replaced.rows_affected() > 0)
}

/// Reopens a message that was recorded as failed but must be sent; `false` if the log doesn't record a failure, or
/// there has been an attempt since. Once stored, its row shows that it is waiting.
pub async fn reopen(connection: &mut PgConnection, id: LogId) -> Result<bool, sqlx::Error> {
    let reopened = sqlx::query_scalar!(
        r#"WITH reopened AS (
             UPDATE email_logs SET status = 'failed_temp'
             WHERE id = $1 AND status = 'failed_perm'
                   AND NOT EXISTS (SELECT FROM email_attempts WHERE log_id = $1)
             RETURNING app_id, plugin, sent_at
         ), counted AS (
             INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
             SELECT app_id, date_trunc('hour', sent_at, 'UTC'), plugin, 'failed_perm', -1
             FROM reopened
         )
         SELECT EXISTS (SELECT FROM reopened) AS "reopened!""#,
        id.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(reopened)
}
