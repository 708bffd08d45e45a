//! Scheduled messages, which the log doesn't have yet.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId, lowest_uuid_at};
use mailgate_types::plugin::Plugin;

/// A message that is to leave later.
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
    /// When it is to leave.
    pub send_at: DateTime<Utc>,
}

/// Which scheduled messages, all of one subscriber.
#[derive(Debug, Clone, Copy)]
pub struct ScheduledFilter {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// Of one app.
    pub app: Option<AppId>,
    /// Of one provider.
    pub plugin: Option<Plugin>,
    /// That leave from this moment on, in whole milliseconds.
    pub from: Option<DateTime<Utc>>,
    /// That leave before this moment.
    pub before: Option<DateTime<Utc>>,
}

impl ScheduledFilter {
    /// The range of ids, which hold the times.
    fn ids(&self) -> (Uuid, Uuid) {
        (
            self.from.map_or(Uuid::nil(), lowest_uuid_at),
            self.before.map_or(Uuid::max(), lowest_uuid_at),
        )
    }
}

struct Row {
    id: Uuid,
    app_id: Uuid,
    app_name: String,
    credential_id: Uuid,
    from_address: String,
    to_address: String,
    cc_addresses: Vec<String>,
    bcc_addresses: Vec<String>,
    subject: String,
    plugin: String,
    message_id: Option<String>,
    size_bytes: i64,
    has_attachments: bool,
    opened_at: DateTime<Utc>,
}

impl TryFrom<Row> for Scheduled {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: LogId(row.id),
            app: AppId(row.app_id),
            app_name: row.app_name,
            credential: CredentialId(row.credential_id),
            from_address: row.from_address,
            to_address: row.to_address,
            cc_addresses: row.cc_addresses,
            bcc_addresses: row.bcc_addresses,
            subject: row.subject,
            plugin: (row.plugin.parse()).map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            message_id: row.message_id,
            size_bytes: row.size_bytes,
            has_attachments: row.has_attachments,
            send_at: row.opened_at,
        })
    }
}

/// How many scheduled messages there are. They are counted in the index, app by app: the quota bounds them.
pub async fn count_scheduled(
    connection: &mut PgConnection,
    filter: ScheduledFilter,
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
        filter.app.map(|app| app.0),
        filter.plugin.map(Plugin::as_str),
        from,
        before,
    )
    .fetch_one(connection)
    .await
}

/// Up to `limit` scheduled messages without the first `offset`, the next to leave first.
pub async fn list_scheduled(
    connection: &mut PgConnection,
    filter: ScheduledFilter,
    limit: i64,
    offset: i64,
) -> Result<Vec<Scheduled>, sqlx::Error> {
    let (from, before) = filter.ids();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT message.id AS "id!", apps.id AS app_id, apps.name AS app_name,
                  credential_id AS "credential_id!", from_address AS "from_address!",
                  to_address AS "to_address!", cc_addresses AS "cc_addresses!",
                  bcc_addresses AS "bcc_addresses!", subject AS "subject!", plugin AS "plugin!",
                  message_id, size_bytes AS "size_bytes!", has_attachments AS "has_attachments!",
                  opened_at AS "opened_at!"
           FROM (
               SELECT found.id
               FROM apps CROSS JOIN LATERAL (
                   SELECT id FROM spool
                   WHERE spool.app_id = apps.id AND send_at IS NOT NULL AND NOT is_logged
                     AND spool.id >= $4 AND spool.id < $5 AND ($3::text IS NULL OR plugin = $3)
                   ORDER BY id LIMIT $6::bigint + $7::bigint
               ) AS found
               WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR apps.id = $2)
               ORDER BY found.id OFFSET $6 LIMIT $7
           ) AS page
                JOIN spool AS message ON message.id = page.id
                JOIN apps ON apps.id = message.app_id
           ORDER BY message.id"#,
        filter.subscriber.0,
        filter.app.map(|app| app.0),
        filter.plugin.map(Plugin::as_str),
        from,
        before,
        offset,
        limit,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Scheduled::try_from).collect()
}

/// A scheduled message of a subscriber; `None` if there is none.
pub async fn find_scheduled(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: LogId,
) -> Result<Option<Scheduled>, sqlx::Error> {
    let row = sqlx::query_as!(
        Row,
        "SELECT spool.id, app_id, apps.name AS app_name, credential_id, from_address, to_address,
                cc_addresses, bcc_addresses, subject, plugin, message_id, size_bytes,
                has_attachments, opened_at
         FROM spool JOIN apps ON apps.id = app_id AND apps.subscriber_id = $2
         WHERE spool.id = $1 AND send_at IS NOT NULL AND NOT is_logged",
        id.0,
        subscriber.0,
    )
    .fetch_optional(connection)
    .await?;
    row.map(Scheduled::try_from).transpose()
}
