//! Checks candidate log rows against all search criteria, whichever index found them.

use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::rows::LogRow;
use super::search::{Kind, Window, columns};
use mailgate_types::ids::{AppId, CredentialId, LogId, Owner, SubscriberId, UserKey};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// The criteria; `None` matches any row.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// Of this app.
    pub app: Option<AppId>,
    /// Of this provider.
    pub plugin: Option<Plugin>,
    /// In this state.
    pub status: Option<LogStatus>,
    /// Bounced permanently, or not.
    pub bounced: Option<bool>,
    /// To this address, in lower case.
    pub recipient: Option<String>,
    /// With one of these Message-IDs.
    pub message_ids: Option<Vec<String>>,
    /// From this mailbox.
    pub credential: Option<CredentialId>,
    /// From a mailbox of one of these users.
    pub users: Option<Vec<UserKey>>,
    /// With a subject in which this regular expression matches.
    pub subject: Option<String>,
}

impl Matching {
    /// The users' ids.
    pub(crate) fn users(&self) -> Option<Vec<Uuid>> {
        let users = self.users.as_ref()?;
        Some(users.iter().map(|user| user.0).collect())
    }
}

/// Those of a subscriber's rows with these ids that match, newest first.
pub async fn matching(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    ids: &[LogId],
    matching: &Matching,
) -> Result<Vec<LogRow>, sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let users = matching.users();
    // The bounds let Postgres prune partitions.
    sqlx::query_as!(
        LogRow,
        r#"SELECT log.id, log.app_id AS app, apps.name AS app_name, credential_id AS credential,
                  from_address, to_address, subject, plugin AS "plugin: Plugin",
                  status AS "status: LogStatus", error_message, message_id, size_bytes, sent_at,
                  EXISTS (SELECT FROM bounced_messages WHERE log_id = log.id) AS "bounced!"
           FROM email_logs AS log JOIN apps ON apps.id = log.app_id AND apps.subscriber_id = $2
           WHERE log.id = ANY($1) AND log.id >= $3 AND log.id <= $4
                 AND ($5::uuid IS NULL OR log.app_id = $5)
                 AND ($6::text IS NULL OR plugin = $6)
                 AND ($7::text IS NULL OR status = $7)
                 AND ($8::text IS NULL
                      OR $8 IN (SELECT address
                               FROM log_recipients(to_address, cc_addresses, bcc_addresses)
                                        AS named (address)))
                 AND ($9::text[] IS NULL OR message_id = ANY($9))
                 AND ($10::uuid IS NULL OR credential_id = $10)
                 AND ($11::uuid[] IS NULL
                      OR (SELECT user_key FROM mailboxes WHERE mailboxes.id = credential_id) = ANY($11))
                 AND ($12::text IS NULL OR subject COLLATE "C" ~ $12)
                 AND ($13::boolean IS NULL
                      OR EXISTS (SELECT FROM bounced_messages WHERE log_id = log.id) = $13)
           ORDER BY log.id DESC"#,
        &ids,
        subscriber.0,
        ids.iter().min().copied().unwrap_or_default(),
        ids.iter().max().copied().unwrap_or_default(),
        matching.app.map(|app| app.0),
        matching.plugin.map(Plugin::as_str),
        matching.status.map(LogStatus::as_str),
        matching.recipient.as_deref(),
        matching.message_ids.as_deref(),
        matching.credential.map(|credential| credential.0),
        users.as_deref(),
        matching.subject.as_deref(),
        matching.bounced,
    )
    .fetch_all(connection)
    .await
}

/// Up to `limit` rows of these kinds in a window whose users and subject match, newest first. All rows of the window
/// are read, so it must be a small one.
pub async fn scan(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
    matching: &Matching,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let (plugins, statuses) = columns(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    let users = matching.users();
    macro_rules! found {
        ($owner:literal, $but:literal $(, $deleted:expr)?) => {
            sqlx::query_scalar!(
                r#"SELECT found.id
                   FROM unnest($2::text[], $3::text[]) AS kind (plugin, status)
                        CROSS JOIN LATERAL (
                            SELECT id FROM email_logs AS log
                            WHERE "# + $owner + " = $1 AND log.plugin = kind.plugin
                              AND log.status = kind.status AND id >= $4 AND id < $5 " + $but + r#"
                              AND ($6::uuid[] IS NULL
                                   OR (SELECT user_key FROM mailboxes
                                       WHERE mailboxes.id = log.credential_id) = ANY($6))
                              AND ($7::text IS NULL OR subject COLLATE "C" ~ $7)
                            ORDER BY id DESC LIMIT $8
                        ) AS found
                   ORDER BY found.id DESC LIMIT $8"#,
                owner,
                &plugins as &[&str],
                &statuses as &[&str],
                from,
                to,
                users.as_deref(),
                matching.subject.as_deref(),
                limit
                $(, $deleted)?
            )
            .fetch_all(connection)
            .await?
        };
    }
    let ids = match window.owner {
        Owner::App(_) => found!("app_id", ""),
        Owner::Subscriber(_) => {
            found!("subscriber_id", "AND app_id <> ALL($9)", &window.deleted())
        }
    };
    Ok(ids.into_iter().map(LogId).collect())
}
