//! Waiting messages one by one, for the operator.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId};
use mailgate_types::plugin::Plugin;
use mailgate_types::waiting_reason::WaitingReason;

/// A message in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The app's slug; `None` if the app was deleted.
    pub slug: Option<String>,
    /// The app's subscriber; `None` if the app was deleted.
    pub subscriber: Option<SubscriberId>,
    /// The mailbox it is sent from.
    pub credential: CredentialId,
    /// The sender's address.
    pub from_address: String,
    /// The provider.
    pub plugin: Plugin,
    /// Why it waits.
    pub reason: WaitingReason,
    /// Whether a process has claimed it at the moment.
    pub in_progress: bool,
    /// The provider may already have it.
    pub outcome_unknown: bool,
    /// Attempts that have failed so far.
    pub attempts: i32,
    /// When the next attempt is due; `None` during the first.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was accepted; for a scheduled message, its scheduled time.
    pub opened_at: DateTime<Utc>,
    /// Its size in bytes.
    pub size_bytes: i64,
}

/// Up to `limit` waiting messages, earliest due first, of one app or of all, of one mailbox or any, for one reason or
/// any.
pub async fn list(
    connection: &mut PgConnection,
    app: Option<AppId>,
    mailbox: Option<CredentialId>,
    reason: Option<WaitingReason>,
    limit: i64,
    offset: i64,
) -> Result<Vec<Listed>, sqlx::Error> {
    sqlx::query_as!(
        Listed,
        r#"SELECT waiting.id, app_id AS app, slug AS "slug?",
                  subscriber_id AS "subscriber?: SubscriberId", credential_id AS credential, from_address,
                  plugin AS "plugin: Plugin", reason AS "reason!: WaitingReason", false AS "in_progress!",
                  outcome_unknown, attempts, next_attempt_at, opened_at, size_bytes
           FROM (
               SELECT *, CASE WHEN send_at IS NOT NULL AND NOT is_logged THEN 'scheduled'
                              WHEN awaits_subscription THEN 'subscription'
                              WHEN awaits_pace THEN 'mailbox_limit'
                              ELSE 'temporary_failure' END AS reason
               FROM spool
               WHERE state = 'deferred' AND ($1::uuid IS NULL OR app_id = $1)
                     AND ($2::uuid IS NULL OR credential_id = $2)
           ) AS waiting LEFT JOIN apps ON apps.id = app_id
           WHERE $3::text IS NULL OR reason = $3
           ORDER BY next_attempt_at, waiting.id
           LIMIT $4 OFFSET $5"#,
        app.map(|app| app.0),
        mailbox.map(|mailbox| mailbox.0),
        reason.map(WaitingReason::as_str),
        limit,
        offset,
    )
    .fetch_all(connection)
    .await
}

/// A message of the spool, whether it waits or is being sent.
pub async fn show(connection: &mut PgConnection, id: LogId) -> Result<Option<Listed>, sqlx::Error> {
    sqlx::query_as!(
        Listed,
        r#"SELECT spool.id, app_id AS app, slug AS "slug?",
                  subscriber_id AS "subscriber?: SubscriberId", credential_id AS credential, from_address,
                  plugin AS "plugin: Plugin",
                  CASE WHEN send_at IS NOT NULL AND NOT is_logged THEN 'scheduled'
                       WHEN awaits_subscription THEN 'subscription'
                       WHEN awaits_pace THEN 'mailbox_limit'
                       ELSE 'temporary_failure' END AS "reason!: WaitingReason",
                  state <> 'deferred' AS "in_progress!", outcome_unknown, attempts,
                  next_attempt_at, opened_at, size_bytes
           FROM spool LEFT JOIN apps ON apps.id = app_id
           WHERE spool.id = $1"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
}
