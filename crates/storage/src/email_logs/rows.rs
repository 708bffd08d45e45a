//! Log rows as their subscriber sees them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId};
use mailgate_types::log_status::{CANCELLED, LogStatus};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;

/// A message in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// The message.
    pub id: LogId,
    /// The app that sent it.
    pub app: AppId,
    /// The app's name.
    pub app_name: String,
    /// The mailbox that it was sent from.
    pub credential: CredentialId,
    /// The mailbox's address.
    pub from_address: String,
    /// The first recipient named in the message.
    pub to_address: String,
    /// The subject.
    pub subject: String,
    /// The provider.
    pub plugin: Plugin,
    /// Its status.
    pub status: LogStatus,
    /// Why it failed.
    pub error_message: Option<String>,
    /// The Message-ID assigned by the provider, or its own.
    pub message_id: Option<String>,
    /// Size of the message in bytes.
    pub size_bytes: i64,
    /// The time of its first attempt.
    pub sent_at: DateTime<Utc>,
    /// Whether it was sent, and has bounced permanently for a recipient.
    pub bounced: bool,
}

impl LogRow {
    /// Whether its subscriber or the operator cancelled it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.error_message.as_deref() == Some(CANCELLED)
    }
}

/// All details of a message in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The fields also shown in lists.
    pub log: LogRow,
    /// Further recipients.
    pub cc_addresses: Vec<String>,
    /// Recipients that no header names.
    pub bcc_addresses: Vec<String>,
    /// Whether files are attached.
    pub has_attachments: bool,
    /// The app's metadata.
    pub metadata: Metadata,
    /// How it was submitted; `None`: an earlier release didn't write it.
    pub door: Option<Door>,
}

/// A subscriber's rows with these ids, newest first.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    ids: &[LogId],
) -> Result<Vec<LogRow>, sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    // The bounds let Postgres prune partitions.
    sqlx::query_as!(
        LogRow,
        r#"SELECT log.id, app_id AS app, apps.name AS app_name, credential_id AS credential, from_address, to_address,
                  subject, plugin AS "plugin: Plugin", status AS "status: LogStatus", error_message,
                  message_id, size_bytes, sent_at,
                  EXISTS (SELECT FROM bounced_messages WHERE log_id = log.id) AS "bounced!"
           FROM email_logs AS log JOIN apps ON apps.id = app_id AND apps.subscriber_id = $2
           WHERE log.id = ANY($1) AND log.id >= $3 AND log.id <= $4
           ORDER BY log.id DESC"#,
        &ids,
        subscriber.0,
        ids.iter().min().copied().unwrap_or_default(),
        ids.iter().max().copied().unwrap_or_default(),
    )
    .fetch_all(connection)
    .await
}

/// One row with all its details; `None` if there is none, or it belongs to another subscriber.
pub async fn details(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: LogId,
) -> Result<Option<Details>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT log.id, app_id, apps.name AS app_name, credential_id, from_address, to_address,
                  cc_addresses, bcc_addresses, subject, plugin AS "plugin: Plugin",
                  status AS "status: LogStatus", error_message, message_id, size_bytes,
                  has_attachments, sent_at, metadata, door,
                  EXISTS (SELECT FROM bounced_messages WHERE log_id = log.id) AS "bounced!"
           FROM email_logs AS log JOIN apps ON apps.id = app_id AND apps.subscriber_id = $2
           WHERE log.id = $1"#,
        id.0,
        subscriber.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Details {
        log: LogRow {
            id: row.id.into(),
            app: row.app_id.into(),
            app_name: row.app_name,
            credential: row.credential_id.into(),
            from_address: row.from_address,
            to_address: row.to_address,
            subject: row.subject,
            plugin: row.plugin,
            status: row.status,
            error_message: row.error_message,
            message_id: row.message_id,
            size_bytes: row.size_bytes,
            sent_at: row.sent_at,
            bounced: row.bounced,
        },
        cc_addresses: row.cc_addresses,
        bcc_addresses: row.bcc_addresses,
        has_attachments: row.has_attachments,
        metadata: row.metadata.into(),
        door: row.door.as_deref().and_then(Door::named),
    }))
}
