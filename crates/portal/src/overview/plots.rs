//! Plots as SVG shapes, and the tables behind them.

use crate::page::words::number;
use mailgate_domain::reports::{MailboxCounts, PeriodCounts};
use mailgate_types::log_status::LogStatus;

/// A plot's height in units, which the highest bar fills.
pub(crate) const HEIGHT: i64 = 60;

/// The width of a bar's slot, and of the bar.
const PLACE: i64 = 10;
const BAR: i64 = 8;

/// The length of a mailbox's longest bar.
const LENGTH: i64 = 100;

/// A day of the table.
pub(crate) struct Day {
    pub(crate) date: String,
    pub(crate) sent: String,
    pub(crate) waiting: String,
    pub(crate) failed: String,
    pub(crate) bounced: String,
}

impl Day {
    pub(crate) fn new(period: &PeriodCounts) -> Self {
        let counts = &period.counts;
        let of = |status| number(counts.sum(None, Some(status)));
        Self {
            date: period.start.to_string(),
            sent: of(LogStatus::Sent),
            waiting: of(LogStatus::FailedTemp),
            failed: of(LogStatus::FailedPerm),
            bounced: number(counts.bounced(None)),
        }
    }
}

/// A bar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) width: i64,
    pub(crate) height: i64,
    /// Its tooltip.
    pub(crate) title: String,
}

/// The bars of one kind of messages.
pub(crate) struct Plot {
    pub(crate) name: &'static str,
    /// A class of the stylesheet.
    pub(crate) class: &'static str,
    pub(crate) total: String,
    /// The highest bar's count.
    pub(crate) most: String,
    pub(crate) width: i64,
    pub(crate) bars: Vec<Bar>,
}

/// Sent, failed and bounced by day, each on its own scale, as failures are few.
pub(crate) fn plots(days: &[PeriodCounts]) -> [Plot; 3] {
    let of = |status| move |day: &PeriodCounts| day.counts.sum(None, Some(status));
    [
        plot("Sent", "good", days, of(LogStatus::Sent)),
        plot("Failed", "bad", days, of(LogStatus::FailedPerm)),
        plot("Bounced", "busy", days, |day| day.counts.bounced(None)),
    ]
}

fn plot(
    name: &'static str,
    class: &'static str,
    days: &[PeriodCounts],
    count: impl Fn(&PeriodCounts) -> i64,
) -> Plot {
    let counts: Vec<i64> = days.iter().map(&count).collect();
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut bars = Vec::new();
    let mut x = 0;
    for (day, count) in days.iter().zip(&counts) {
        let height = scaled(*count, most, HEIGHT);
        bars.push(Bar {
            x,
            y: HEIGHT - height,
            width: BAR,
            height,
            title: format!("{}: {}", day.start, number(*count)),
        });
        x += PLACE;
    }
    Plot {
        name,
        class,
        total: number(counts.iter().sum()),
        most: number(most),
        width: x,
        bars,
    }
}

/// A count in units, of which `most` has `units`; a count above zero is always visible.
fn scaled(count: i64, most: i64, units: i64) -> i64 {
    if count <= 0 || most <= 0 {
        return 0;
    }
    (count.saturating_mul(units) / most).max(1)
}

/// A mailbox of the table.
pub(crate) struct MailboxBar {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) sent: String,
    pub(crate) waiting: String,
    pub(crate) failed: String,
    pub(crate) bounced: String,
    /// The length of its bar, by its messages, out of 100.
    pub(crate) length: i64,
}

/// Sorted by number of messages.
pub(crate) fn mailbox_bars(counts: &[MailboxCounts]) -> Vec<MailboxBar> {
    let all = |it: &MailboxCounts| it.sent + it.waiting + it.failed;
    let most = counts.iter().map(all).max().unwrap_or_default();
    let bars = counts.iter().map(|it| MailboxBar {
        id: it.id.to_string(),
        email: it.email.clone(),
        sent: number(it.sent),
        waiting: number(it.waiting),
        failed: number(it.failed),
        bounced: number(it.bounced),
        length: scaled(all(it), most, LENGTH),
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_can_be_seen() {
        for (count, most, expected) in [
            (0, 0, 0),
            (0, 9, 0),
            (9, 9, 60),
            (1, 1_000_000, 1),
            (5, 10, 30),
        ] {
            assert_eq!(scaled(count, most, HEIGHT), expected, "{count} of {most}");
        }
    }
}
