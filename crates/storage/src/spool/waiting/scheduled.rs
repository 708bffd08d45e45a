//! Scheduled messages, which aren't in the log yet.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::email_logs::Matching;
use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId, lowest_uuid_at};
use mailgate_types::metadata::Metadata;
use mailgate_types::plugin::Plugin;

/// A scheduled message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// The message.
    pub id: LogId,
    /// The app that sends it.
    pub app: AppId,
    /// The app's name.
    pub app_name: String,
    /// The mailbox it is sent from.
    pub credential: CredentialId,
    /// The sender's address.
    pub from_address: String,
    /// As the log will show it.
    pub to_address: String,
    /// Further recipients.
    pub cc_addresses: Vec<String>,
    /// Recipients that no header names.
    pub bcc_addresses: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The provider.
    pub plugin: Plugin,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// Size of the message in bytes.
    pub size_bytes: i64,
    /// Whether files are attached.
    pub has_attachments: bool,
    /// Its scheduled time.
    pub send_at: DateTime<Utc>,
    /// The app's metadata.
    pub metadata: Metadata,
    /// How it was submitted; `None`: an earlier release didn't write it.
    pub door: Option<Door>,
}

/// Selects scheduled messages of one subscriber.
#[derive(Debug, Clone)]
pub struct ScheduledFilter {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The criteria; the status is ignored.
    pub matching: Matching,
    /// Only this one.
    pub id: Option<LogId>,
    /// Only those scheduled after this one.
    pub after: Option<LogId>,
    /// Scheduled from this time on, in whole milliseconds.
    pub from: Option<DateTime<Utc>>,
    /// Scheduled before this time.
    pub before: Option<DateTime<Utc>>,
}

impl ScheduledFilter {
    /// The range of ids, which hold the times.
    fn ids(&self) -> (Uuid, Uuid) {
        let from = self.from.map_or(Uuid::nil(), lowest_uuid_at);
        let before = self.before.map_or(Uuid::max(), lowest_uuid_at);
        match self.id {
            None => (from, before),
            Some(LogId(id)) if from <= id && id < before => (id, next(id)),
            Some(_) => (Uuid::max(), Uuid::nil()),
        }
    }

    /// Where the list begins.
    fn start(&self) -> Uuid {
        let from = self.ids().0;
        self.after.map_or(from, |after| from.max(next(after.0)))
    }
}

/// The id after this one.
fn next(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

/// The message of a row that has its columns.
macro_rules! scheduled_of {
    ($row:ident) => {
        Scheduled {
            id: LogId($row.id),
            app: AppId($row.app_id),
            app_name: $row.app_name,
            credential: CredentialId($row.credential_id),
            from_address: $row.from_address,
            to_address: $row.to_address,
            cc_addresses: $row.cc_addresses,
            bcc_addresses: $row.bcc_addresses,
            subject: $row.subject,
            plugin: $row.plugin,
            message_id: $row.message_id,
            size_bytes: $row.size_bytes,
            has_attachments: $row.has_attachments,
            send_at: $row.opened_at,
            metadata: $row.metadata.into(),
            door: $row.door.as_deref().and_then(Door::named),
        }
    };
}

/// The number of scheduled messages, filtered by app, provider and time only. They are counted in the index, app by
/// app: the quota bounds them.
pub async fn count_scheduled(
    connection: &mut PgConnection,
    filter: &ScheduledFilter,
) -> Result<i64, sqlx::Error> {
    let (from, before) = filter.ids();
    sqlx::query_scalar!(
        r#"SELECT coalesce(sum(counted.messages), 0)::bigint AS "count!"
           FROM apps CROSS JOIN LATERAL (
               SELECT count(*) AS messages FROM spool
               WHERE spool.app_id = apps.id AND send_at IS NOT NULL AND NOT is_logged
                 AND spool.id >= $4 AND spool.id < $5 AND ($3::text IS NULL OR plugin = $3)
           ) AS counted
           WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR apps.id = $2)"#,
        filter.subscriber.0,
        filter.matching.app.map(|app| app.0),
        filter.matching.plugin.map(Plugin::as_str),
        from,
        before,
    )
    .fetch_one(connection)
    .await
}

/// Up to `limit` scheduled messages after the first `offset`, the next one first.
pub async fn list_scheduled(
    connection: &mut PgConnection,
    filter: &ScheduledFilter,
    limit: i64,
    offset: i64,
) -> Result<Vec<Scheduled>, sqlx::Error> {
    let (_, before) = filter.ids();
    let (from, matching) = (filter.start(), &filter.matching);
    let users = matching.users();
    let rows = sqlx::query!(
        r#"SELECT message.id AS "id!", apps.id AS app_id, apps.name AS app_name,
                  credential_id AS "credential_id!", from_address AS "from_address!",
                  to_address AS "to_address!", cc_addresses AS "cc_addresses!",
                  bcc_addresses AS "bcc_addresses!", subject AS "subject!", plugin AS "plugin!: Plugin",
                  message_id, size_bytes AS "size_bytes!", has_attachments AS "has_attachments!",
                  opened_at AS "opened_at!", metadata, door
           FROM (
               SELECT found.id
               FROM apps CROSS JOIN LATERAL (
                   SELECT id FROM spool
                   WHERE spool.app_id = apps.id AND send_at IS NOT NULL AND NOT is_logged
                     AND spool.id >= $4 AND spool.id < $5 AND ($3::text IS NULL OR plugin = $3)
                     AND ($8::text IS NULL
                          OR $8 IN (SELECT address
                                    FROM log_recipients(to_address, cc_addresses, bcc_addresses)
                                             AS named (address)))
                     AND ($9::text[] IS NULL OR message_id = ANY($9))
                     AND ($10::uuid IS NULL OR credential_id = $10)
                     AND ($11::uuid[] IS NULL
                          OR (SELECT user_key FROM mailboxes
                              WHERE mailboxes.id = credential_id) = ANY($11))
                     AND ($12::text IS NULL OR subject COLLATE "C" ~ $12)
                   ORDER BY id LIMIT $6::bigint + $7::bigint
               ) AS found
               WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR apps.id = $2)
               ORDER BY found.id OFFSET $6 LIMIT $7
           ) AS page
                JOIN spool AS message ON message.id = page.id
                JOIN apps ON apps.id = message.app_id
           ORDER BY message.id"#,
        filter.subscriber.0,
        matching.app.map(|app| app.0),
        matching.plugin.map(Plugin::as_str),
        from,
        before,
        offset,
        limit,
        matching.recipient.as_deref(),
        matching.message_ids.as_deref(),
        matching.credential.map(|credential| credential.0),
        users.as_deref(),
        matching.subject.as_deref(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| scheduled_of!(row)).collect())
}

/// A scheduled message of a subscriber; `None` if there is none.
pub async fn find_scheduled(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: LogId,
) -> Result<Option<Scheduled>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT spool.id, app_id, apps.name AS app_name, credential_id, from_address, to_address,
                  cc_addresses, bcc_addresses, subject, plugin AS "plugin: Plugin", message_id, size_bytes,
                  has_attachments, opened_at, metadata, door
           FROM spool JOIN apps ON apps.id = app_id AND apps.subscriber_id = $2
           WHERE spool.id = $1 AND send_at IS NOT NULL AND NOT is_logged"#,
        id.0,
        subscriber.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| scheduled_of!(row)))
}
