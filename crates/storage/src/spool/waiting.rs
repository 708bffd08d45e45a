//! Waiting messages in the spool, as the subscriber and the operator see and change them. Each query reads a bounded
//! number of rows of the apps concerned, by index.

mod groups;
mod list;
mod scheduled;

pub use groups::{Group, Groups, groups, usage_of};
pub use list::{Listed, list, show};
pub use scheduled::{Scheduled, ScheduledFilter, count_scheduled, find_scheduled, list_scheduled};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;

/// A waiting message that its caller has locked.
#[derive(Debug, Clone)]
pub struct Locked {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The mailbox it is sent from.
    pub credential: CredentialId,
    /// The provider.
    pub plugin: Plugin,
    /// The mailbox's address.
    pub from_address: String,
    /// As the log shows it.
    pub to_address: String,
    /// As the log shows it.
    pub subject: String,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// The app's metadata.
    pub metadata: Metadata,
    /// Whether the log has it.
    pub is_logged: bool,
    /// Whether it was scheduled.
    pub was_scheduled: bool,
    /// The provider may already have it.
    pub outcome_unknown: bool,
}

/// The app of a message in the spool, and its subscriber.
pub async fn owner(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Option<(AppId, SubscriberId)>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT app_id, subscriber_id FROM spool JOIN apps ON apps.id = app_id WHERE spool.id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (AppId(row.app_id), SubscriberId(row.subscriber_id))))
}

/// Locks a waiting message until the caller's transaction ends, so that no process claims it meanwhile. `None` if a
/// process has claimed it, or it has left the spool: such a message is not locked, since the journal writes it together
/// with others.
pub async fn lock(connection: &mut PgConnection, id: LogId) -> Result<Option<Locked>, sqlx::Error> {
    sqlx::query_as!(
        Locked,
        r#"SELECT id, app_id AS app, credential_id AS credential, plugin AS "plugin: Plugin", from_address,
                  to_address, subject, message_id, metadata, is_logged,
                  send_at IS NOT NULL AS "was_scheduled!", outcome_unknown
           FROM spool WHERE id = $1 AND state = 'deferred' FOR UPDATE"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// Marks waiting messages as possibly sent: those due at `now`, those held for their subscription, and with `all` every
/// one. Returns the number of newly marked ones.
pub async fn mark_unconfirmed(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    all: bool,
) -> Result<u64, sqlx::Error> {
    let marked = sqlx::query!(
        "UPDATE spool SET outcome_unknown = true, left_by = $1
         WHERE state = 'deferred' AND NOT outcome_unknown
               AND (next_attempt_at <= $1 OR awaits_subscription OR $2)",
        now,
        all,
    )
    .execute(connection)
    .await?;
    Ok(marked.rows_affected())
}

/// Makes a deferred message due; returns since when it is.
pub async fn make_due(
    connection: &mut PgConnection,
    id: LogId,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    let due = sqlx::query_scalar!(
        "UPDATE spool
         SET next_attempt_at = least(next_attempt_at, $2), awaits_subscription = false,
             awaits_pace = false
         WHERE id = $1 AND state = 'deferred'
         RETURNING next_attempt_at",
        id.0,
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(due.flatten())
}
