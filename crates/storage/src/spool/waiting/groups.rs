//! The waiting messages of a subscriber's apps, summed by app, mailbox and reason.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::spool::usage::Usage;
use mailgate_types::ids::{AppId, CredentialId, SubscriberId};
use mailgate_types::plugin::Plugin;
use mailgate_types::waiting_reason::WaitingReason;

/// Messages of one app and mailbox that wait for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The app.
    pub app: AppId,
    /// The app's name.
    pub app_name: String,
    /// The mailbox.
    pub credential: CredentialId,
    /// The mailbox's own address.
    pub email: Option<String>,
    /// The provider.
    pub plugin: Plugin,
    /// Why they wait.
    pub reason: WaitingReason,
    /// Their number.
    pub messages: i64,
    /// Their total size in bytes.
    pub bytes: i64,
    /// The earliest `opened_at` of them.
    pub oldest_at: DateTime<Utc>,
    /// When the first of them is due.
    pub next_attempt_at: DateTime<Utc>,
}

/// The groups of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups {
    /// Those with the most messages first.
    pub groups: Vec<Group>,
    /// Whether these are all groups, with all of their messages.
    pub is_complete: bool,
}

/// The exact total of a subscriber's waiting messages, including those being retried at the moment.
pub async fn usage_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Usage, sqlx::Error> {
    sqlx::query_as!(
        Usage,
        r#"SELECT coalesce(sum(messages), 0)::bigint AS "messages!",
                  coalesce(sum(bytes), 0)::bigint AS "bytes!"
           FROM apps CROSS JOIN LATERAL (
               SELECT messages, bytes FROM spool_usage WHERE app_id = apps.id
               UNION ALL
               SELECT messages, bytes FROM spool_usage_changes WHERE app_id = apps.id
           ) AS both_parts
           WHERE subscriber_id = $1"#,
        subscriber.0,
    )
    .fetch_one(connection)
    .await
}

/// Up to `most` groups of a subscriber's waiting messages, over up to `read` messages.
pub async fn groups(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    most: i64,
    read: i64,
) -> Result<Groups, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT app_id AS "app_id!", app_name AS "app_name!", credential_id AS "credential_id!",
                  (SELECT email FROM mailboxes WHERE mailboxes.id = credential_id) AS email,
                  plugin AS "plugin!: Plugin", reason AS "reason!: WaitingReason", count(*) AS "messages!",
                  sum(size_bytes)::bigint AS "bytes!", min(opened_at) AS "oldest_at!",
                  min(next_attempt_at) AS "next_attempt_at!", count(*) OVER () AS "all_groups!",
                  (sum(count(*)) OVER ())::bigint AS "all_messages!"
           FROM (
               SELECT apps.id AS app_id, apps.name AS app_name, waiting.*
               FROM apps CROSS JOIN LATERAL (
                   SELECT credential_id, plugin, size_bytes, opened_at, next_attempt_at,
                          CASE WHEN send_at IS NOT NULL AND NOT is_logged THEN 'scheduled'
                               WHEN awaits_subscription THEN 'subscription'
                               WHEN awaits_pace THEN 'mailbox_limit'
                               ELSE 'temporary_failure' END AS reason
                   FROM spool WHERE spool.app_id = apps.id AND state = 'deferred'
                   LIMIT $3
               ) AS waiting
               WHERE subscriber_id = $1
               LIMIT $3
           ) AS sample
           GROUP BY app_id, app_name, credential_id, plugin, reason
           ORDER BY count(*) DESC, app_id, credential_id, plugin, reason
           LIMIT $2"#,
        subscriber.0,
        most,
        read,
    )
    .fetch_all(connection)
    .await?;
    let is_complete = rows
        .first()
        .is_none_or(|row| row.all_groups <= most && row.all_messages < read);
    let groups = rows.into_iter().map(|row| Group {
        app: AppId(row.app_id),
        app_name: row.app_name,
        credential: CredentialId(row.credential_id),
        email: row.email,
        plugin: row.plugin,
        reason: row.reason,
        messages: row.messages,
        bytes: row.bytes,
        oldest_at: row.oldest_at,
        next_attempt_at: row.next_attempt_at,
    });
    Ok(Groups {
        groups: groups.collect(),
        is_complete,
    })
}
