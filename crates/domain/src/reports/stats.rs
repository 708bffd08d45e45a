//! A summary of a subscriber's figures.

use chrono::{DateTime, Utc};

use super::calendar::{after, floor};
use super::tally::{Counted, Tally};
use super::{Reports, scope, success_rate};
use mailgate_storage::apps;
use mailgate_storage::email_counters::{Counts, Run, Unit};
use mailgate_storage::mailboxes::count::count_active;
use mailgate_types::ids::SubscriberId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A subscriber's figures. Messages count in the day and month (UTC) of their first attempt, and only those that a
/// provider has accepted count as sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Apps.
    pub apps: i64,
    /// Active mailboxes.
    pub mailboxes: i64,
    /// Messages sent, ever.
    pub sent: i64,
    /// Messages sent today.
    pub sent_today: i64,
    /// Messages sent this month.
    pub sent_this_month: i64,
    /// Messages sent, ever, that have bounced permanently.
    pub bounced: i64,
    /// Those of today.
    pub bounced_today: i64,
    /// Those of this month.
    pub bounced_this_month: i64,
    /// The fraction of all messages, ever, that was sent: from 0 to 1.
    pub success_rate: f64,
    /// Both providers, in order.
    pub plugins: [PluginStats; 2],
}

/// The figures of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginStats {
    /// The provider.
    pub plugin: Plugin,
    /// Active mailboxes.
    pub mailboxes: i64,
    /// Messages sent this month.
    pub sent_this_month: i64,
}

impl Reports {
    /// The subscriber's figures.
    pub async fn stats(&self, subscriber: SubscriberId) -> Result<Stats, sqlx::Error> {
        let mut snapshot = self.snapshot().await?;
        let apps = apps::count(&mut snapshot, subscriber).await?;
        let active = count_active(&mut snapshot, subscriber).await?;
        let scope = scope(&mut snapshot, subscriber, None).await?;
        let Some(scope) = scope else {
            return Err(sqlx::Error::RowNotFound);
        };
        let now = self.clock.now();
        let (today, month) = (floor(now, Unit::Day), floor(now, Unit::Month));
        let ever = Run {
            unit: Unit::Month,
            from: DateTime::UNIX_EPOCH,
            to: after(month, Unit::Month),
        };
        let day = Run {
            unit: Unit::Day,
            from: today,
            to: after(today, Unit::Day),
        };
        let mut tally = Tally::open(&mut snapshot, scope).await?;
        let counted = tally.whole(&[ever, day]).await?;
        snapshot.commit().await?;
        let all = sum(&counted, Unit::Month, DateTime::UNIX_EPOCH);
        let this_month = sum(&counted, Unit::Month, month);
        let this_day = sum(&counted, Unit::Day, today);
        let sent = Some(LogStatus::Sent);
        Ok(Stats {
            apps,
            mailboxes: active.iter().map(|(_, count)| count).sum(),
            sent: all.sum(None, sent),
            sent_today: this_day.sum(None, sent),
            sent_this_month: this_month.sum(None, sent),
            bounced: all.bounced(None),
            bounced_today: this_day.bounced(None),
            bounced_this_month: this_month.bounced(None),
            success_rate: success_rate(&all),
            plugins: Plugin::ALL.map(|plugin| PluginStats {
                plugin,
                mailboxes: active
                    .iter()
                    .find(|(which, _)| *which == plugin)
                    .map_or(0, |(_, count)| *count),
                sent_this_month: this_month.sum(Some(plugin), sent),
            }),
        })
    }
}

/// The sum of the days, or months, from a given time on.
fn sum(counted: &[Counted], unit: Unit, from: DateTime<Utc>) -> Counts {
    let mut counts = Counts::default();
    for piece in counted {
        if piece.unit == Some(unit) && piece.from >= from {
            counts.add_all(&piece.counts);
        }
    }
    counts
}
