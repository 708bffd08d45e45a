//! Messages by day or by month.

use chrono::{DateTime, Days, Months, NaiveDate, Utc};

use super::calendar::{after, floor};
use super::tally::Tally;
use super::{AppReference, Reports, scope, success_rate};
use mailgate_storage::email_counters::{Counts, Run, Unit};
use mailgate_types::ids::SubscriberId;

/// The period that messages are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// The last 30 days (UTC), including today.
    Day,
    /// The last 12 months (UTC), including this one.
    Month,
}

/// The number of days and months shown.
const DAYS: u32 = 30;
const MONTHS: u32 = 12;

/// Messages by day or month.
#[derive(Debug, Clone, PartialEq)]
pub struct EmailStats {
    /// Every day or month of the period, oldest first, including those without messages.
    pub data: Vec<PeriodCounts>,
    /// A summary, for months only.
    pub summary: Option<Summary>,
}

/// The messages first attempted in a day or month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodCounts {
    /// The day, or the first day of the month.
    pub start: NaiveDate,
    /// Their number.
    pub counts: Counts,
}

/// A summary of twelve months.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// All messages.
    pub total: i64,
    /// A twelfth of them, to the nearest whole number.
    pub average: i64,
    /// The first day of the month with the most messages; of several, the latest.
    pub best: NaiveDate,
    /// The fraction of them that was sent: from 0 to 1.
    pub success_rate: f64,
    /// Those that have bounced permanently.
    pub bounced: i64,
}

impl Reports {
    /// The messages of a subscriber, or of one of its apps, by day or month. All zero for an app
    /// that it doesn't have.
    pub async fn email_stats(
        &self,
        subscriber: SubscriberId,
        period: Period,
        app: Option<&AppReference>,
    ) -> Result<EmailStats, sqlx::Error> {
        let starts = starts(self.clock.now(), period);
        let unit = match period {
            Period::Day => Unit::Day,
            Period::Month => Unit::Month,
        };
        let mut data: Vec<PeriodCounts> = starts
            .iter()
            .map(|start| PeriodCounts {
                start: start.date_naive(),
                counts: Counts::default(),
            })
            .collect();
        let mut snapshot = self.snapshot().await?;
        if let (Some(scope), Some(first), Some(last)) = (
            scope(&mut snapshot, subscriber, app).await?,
            starts.first(),
            starts.last(),
        ) {
            let run = Run {
                unit,
                from: *first,
                to: after(*last, unit),
            };
            let mut tally = Tally::open(&mut snapshot, scope).await?;
            for counted in tally.whole(&[run]).await? {
                if let Some(position) = starts.iter().position(|start| *start == counted.from) {
                    data[position].counts = counted.counts;
                }
            }
        }
        snapshot.commit().await?;
        let summary = (period == Period::Month).then(|| summary(&data)).flatten();
        Ok(EmailStats { data, summary })
    }
}

/// The starts of a period's days or months, oldest first.
fn starts(now: DateTime<Utc>, period: Period) -> Vec<DateTime<Utc>> {
    let (today, month) = (floor(now, Unit::Day), floor(now, Unit::Month));
    match period {
        Period::Day => (0..DAYS)
            .rev()
            .filter_map(|back| today.checked_sub_days(Days::new(back.into())))
            .collect(),
        Period::Month => (0..MONTHS)
            .rev()
            .filter_map(|back| month.checked_sub_months(Months::new(back)))
            .collect(),
    }
}

fn summary(data: &[PeriodCounts]) -> Option<Summary> {
    let mut all = Counts::default();
    for month in data {
        all.add_all(&month.counts);
    }
    let total = all.sum(None, None);
    // Among equals, this takes the last.
    let best = data
        .iter()
        .max_by_key(|month| month.counts.sum(None, None))?;
    let months = i64::from(MONTHS);
    Some(Summary {
        total,
        average: (total + months / 2) / months,
        best: best.start,
        success_rate: success_rate(&all),
        bounced: all.bounced(None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::log_status::LogStatus;
    use mailgate_types::plugin::Plugin;

    #[test]
    fn days_and_months_end_with_the_present_ones() {
        let now = "2026-03-31T23:59:59.999Z".parse().unwrap_or_default();
        let days = starts(now, Period::Day);
        assert_eq!(days.len(), 30);
        assert_eq!(days[0].to_string(), "2026-03-02 00:00:00 UTC");
        assert_eq!(days[29].to_string(), "2026-03-31 00:00:00 UTC");
        let months = starts(now, Period::Month);
        assert_eq!(months.len(), 12);
        assert_eq!(months[0].to_string(), "2025-04-01 00:00:00 UTC");
        assert_eq!(months[10].to_string(), "2026-02-01 00:00:00 UTC");
    }

    #[test]
    fn a_summary() {
        let month = |start: &str, sent: i64| {
            let mut counts = Counts::default();
            counts.add(Plugin::B, LogStatus::Sent, sent);
            counts.add(Plugin::A, LogStatus::FailedPerm, 1);
            counts.add_bounced(Plugin::B, 2);
            PeriodCounts {
                start: start.parse().unwrap_or_default(),
                counts,
            }
        };
        let data = [
            month("2026-01-01", 8),
            month("2026-02-01", 3),
            month("2026-03-01", 8),
        ];
        let summary = summary(&data);
        let summary = summary.as_ref();
        let figures = summary.map(|it| (it.total, it.average, it.bounced));
        assert_eq!(figures, Some((22, 2, 6)));
        let best = summary.map(|it| it.best.to_string());
        assert_eq!(best.as_deref(), Some("2026-03-01"));
        assert!(summary.is_some_and(|it| (it.success_rate - 19.0 / 22.0).abs() < 1e-12));
    }
}
