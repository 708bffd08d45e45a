//! Finds and counts log rows by time and status alone, using indexes only.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, LogId, Owner, lowest_uuid_at};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A plugin and a status: the rows of one kind are adjacent in the indexes, in time order.
pub type Kind = (Plugin, LogStatus);

/// The rows to search.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The app or subscriber that owns them.
    pub owner: Owner,
    /// Deleted apps of a subscriber whose rows may still exist.
    pub deleted: &'a [AppId],
    /// The start, to the millisecond.
    pub from: DateTime<Utc>,
    /// The end, exclusive.
    pub to: DateTime<Utc>,
    /// Only rows older than this one.
    pub older_than: Option<LogId>,
}

impl Window<'_> {
    pub(crate) fn ids(&self) -> (Uuid, Uuid) {
        let to = lowest_uuid_at(self.to);
        let to = self.older_than.map_or(to, |row| to.min(row.0));
        (lowest_uuid_at(self.from), to)
    }

    pub(crate) fn deleted(&self) -> Vec<Uuid> {
        self.deleted.iter().map(|app| app.0).collect()
    }
}

/// The kinds as two columns.
pub(crate) fn columns(kinds: &[Kind]) -> (Vec<&'static str>, Vec<&'static str>) {
    kinds
        .iter()
        .map(|(plugin, status)| (plugin.as_str(), status.as_str()))
        .unzip()
}

/// The number of rows in a window by kind, in the order of `kinds`.
pub async fn count(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
) -> Result<Vec<i64>, sqlx::Error> {
    let (plugins, statuses) = columns(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    macro_rules! counted {
        ($owner:literal, $but:literal $(, $deleted:expr)?) => {
            sqlx::query_scalar!(
                r#"SELECT counted.count AS "count!"
                   FROM unnest($2::text[], $3::text[]) WITH ORDINALITY
                            AS kind (plugin, status, position)
                        CROSS JOIN LATERAL (
                            SELECT count(*) FROM email_logs AS log
                            WHERE "# + $owner + " = $1 AND log.plugin = kind.plugin
                              AND log.status = kind.status AND id >= $4 AND id < $5 " + $but + "
                        ) AS counted
                   ORDER BY position",
                owner,
                &plugins as &[&str],
                &statuses as &[&str],
                from,
                to
                $(, $deleted)?
            )
            .fetch_all(connection)
            .await
        };
    }
    match window.owner {
        Owner::App(_) => counted!("app_id", ""),
        Owner::Subscriber(_) if window.deleted.is_empty() => counted!("subscriber_id", ""),
        Owner::Subscriber(_) => {
            counted!("subscriber_id", "AND app_id <> ALL($6)", &window.deleted())
        }
    }
}

/// Up to `limit` rows of these kinds in a window, newest first, without the first `skip`.
pub async fn find(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
    skip: i64,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let (plugins, statuses) = columns(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    macro_rules! found {
        ($owner:literal, $but:literal $(, $deleted:expr)?) => {
            sqlx::query_scalar!(
                "SELECT found.id
                 FROM unnest($2::text[], $3::text[]) AS kind (plugin, status)
                      CROSS JOIN LATERAL (
                          SELECT id FROM email_logs AS log
                          WHERE " + $owner + " = $1 AND log.plugin = kind.plugin
                            AND log.status = kind.status AND id >= $4 AND id < $5 " + $but + "
                          ORDER BY id DESC LIMIT $6::bigint + $7::bigint
                      ) AS found
                 ORDER BY found.id DESC OFFSET $6 LIMIT $7",
                owner,
                &plugins as &[&str],
                &statuses as &[&str],
                from,
                to,
                skip,
                limit
                $(, $deleted)?
            )
            .fetch_all(connection)
            .await?
        };
    }
    let ids = match window.owner {
        Owner::App(_) => found!("app_id", ""),
        Owner::Subscriber(_) if window.deleted.is_empty() => found!("subscriber_id", ""),
        Owner::Subscriber(_) => {
            found!("subscriber_id", "AND app_id <> ALL($8)", &window.deleted())
        }
    };
    Ok(ids.into_iter().map(LogId).collect())
}
