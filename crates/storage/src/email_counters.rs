//! The tables `email_counters`, `email_counter_changes` and `bounce_counter_changes`: messages of apps and subscribers
//! by hour, day and month, plugin and status, and those that bounced. [`crate::database::journal`] counts messages that end; counts wait as changes until [`fold`] adds them
//! up, and are read with the rest meanwhile.

mod fold;
mod largest;
mod months;
mod read;

pub use fold::{fold, fold_bounced, lock, remove, remove_old, try_lock, vacuum, withdraw_app};
pub use largest::{Largest, largest};
pub use months::fold_months;
pub use read::{Run, counted, pending};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::spool::Deferred;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A unit of time that messages are counted by, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A full hour.
    Hour,
    /// A day, from midnight to midnight.
    Day,
    /// A calendar month.
    Month,
}

impl Unit {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// The start of an owner's row for all old months: only a report over all time includes it.
const ALL_OLD_MONTHS: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Messages by plugin and status, and the number of sent ones that have bounced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    messages: [[i64; 3]; 2],
    bounced: [i64; 2],
}

impl Counts {
    fn place(plugin: Plugin, status: LogStatus) -> (usize, usize) {
        let plugin = match plugin {
            Plugin::A => 0,
            Plugin::B => 1,
        };
        let status = match status {
            LogStatus::Sent => 0,
            LogStatus::FailedTemp => 1,
            LogStatus::FailedPerm => 2,
        };
        (plugin, status)
    }

    /// The count of one plugin and status.
    #[must_use]
    pub fn get(&self, plugin: Plugin, status: LogStatus) -> i64 {
        let (plugin, status) = Self::place(plugin, status);
        self.messages[plugin][status]
    }

    /// Adds `by`.
    pub fn add(&mut self, plugin: Plugin, status: LogStatus, by: i64) {
        let (plugin, status) = Self::place(plugin, status);
        self.messages[plugin][status] += by;
    }

    /// Adds the counts of another.
    pub fn add_all(&mut self, other: &Self) {
        for plugin in Plugin::ALL {
            for status in LogStatus::ALL {
                self.add(plugin, status, other.get(plugin, status));
            }
            self.add_bounced(plugin, other.bounced(Some(plugin)));
        }
    }

    /// Adds `by` bounced messages, which are also among the sent ones.
    pub fn add_bounced(&mut self, plugin: Plugin, by: i64) {
        let (plugin, _) = Self::place(plugin, LogStatus::Sent);
        self.bounced[plugin] += by;
    }

    /// The number of bounced messages, of one plugin if given.
    #[must_use]
    pub fn bounced(&self, plugin: Option<Plugin>) -> i64 {
        let plugins = Plugin::ALL.into_iter();
        plugins
            .filter(|each| plugin.is_none_or(|plugin| plugin == *each))
            .map(|plugin| self.bounced[Self::place(plugin, LogStatus::Sent).0])
            .sum()
    }

    /// The sum over a plugin and a status, each if given.
    #[must_use]
    pub fn sum(&self, plugin: Option<Plugin>, status: Option<LogStatus>) -> i64 {
        let plugins = Plugin::ALL.into_iter();
        plugins
            .filter(|each| plugin.is_none_or(|plugin| plugin == *each))
            .flat_map(|plugin| LogStatus::ALL.map(|status| (plugin, status)))
            .filter(|(_, each)| status.is_none_or(|status| status == *each))
            .map(|(plugin, status)| self.get(plugin, status))
            .sum()
    }
}

/// Adds `by`, which may be negative, to the count of a message that waits for its next attempt, in the hour of its
/// first attempt.
pub async fn count_deferred(
    connection: &mut PgConnection,
    message: &Deferred,
    by: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO email_counter_changes (app_id, hour, plugin, status, messages)
         VALUES ($1, date_trunc('hour', $2::timestamptz, 'UTC'), $3, 'failed_temp', $4)",
        message.app.0,
        message.opened_at,
        message.plugin.as_str(),
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// How many changes are waiting to be folded, 100,000 at most: for the metrics.
pub async fn changes(connection: &mut PgConnection) -> Result<u32, sqlx::Error> {
    let changes = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM (SELECT FROM email_counter_changes LIMIT 100000) AS sample"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(u32::try_from(changes).unwrap_or(u32::MAX))
}

/// A start time and the counts from then on.
pub type CountedFrom = (DateTime<Utc>, Counts);
