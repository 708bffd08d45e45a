//! The plot of messages by day, as SVG shapes, and the table behind it.

use crate::page::frame::query;
use crate::page::words::{number, scaled};
use mailgate_domain::reports::{MailboxCounts, PeriodCounts};
use mailgate_types::log_status::LogStatus;

/// The plot's size in units.
pub(crate) const WIDTH: i64 = 720;
pub(crate) const HEIGHT: i64 = 200;

/// The room for the numbers of the axis, on the left, and for the days, below.
const LEFT: i64 = 44;
const BELOW: i64 = 20;

/// The room above the highest line.
const ABOVE: i64 = 8;

/// The gap between two bars.
const GAP: i64 = 4;

/// Every so many days is named.
const NAMED: usize = 5;

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

/// A part of a day's bar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// A class of the stylesheet.
    pub(crate) class: &'static str,
    pub(crate) y: i64,
    pub(crate) height: i64,
}

/// A day's bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) x: i64,
    /// The middle, where the day's name stands.
    pub(crate) middle: i64,
    pub(crate) width: i64,
    pub(crate) parts: Vec<Part>,
    /// What is below the axis; mostly empty.
    pub(crate) name: String,
    /// Its tooltip.
    pub(crate) title: String,
    /// The day's messages.
    pub(crate) path: String,
}

/// A line of the grid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) y: i64,
    pub(crate) number: String,
}

/// The plot: messages by day, stacked by outcome, with an axis.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) lines: [Line; 3],
    pub(crate) bars: Vec<Bar>,
}

impl Plot {
    pub(crate) fn new(days: &[PeriodCounts], app: &str) -> Self {
        let all = |day: &PeriodCounts| day.counts.sum(None, None);
        let top = rounded(days.iter().map(all).max().unwrap_or_default());
        let floor = HEIGHT - BELOW;
        let height = |count| scaled(count, top, floor - ABOVE);
        let slots = i64::try_from(days.len()).unwrap_or(1).max(1);
        let slot = (WIDTH - LEFT) / slots;
        let mut x = LEFT;
        let bars = days.iter().enumerate().map(|(position, day)| {
            let at = x;
            x += slot;
            let back = days.len() - 1 - position;
            Bar {
                x: at,
                middle: at + slot / 2,
                width: slot - GAP,
                parts: stacked(day, floor, height),
                name: match back {
                    0 => "Today".to_owned(),
                    _ if back.is_multiple_of(NAMED) => day.start.format("%-d %b").to_string(),
                    _ => String::new(),
                },
                title: title(day),
                path: path(day, app),
            }
        });
        Self {
            bars: bars.collect(),
            lines: [0, top / 2, top].map(|count| Line {
                y: floor - height(count),
                number: number(count),
            }),
        }
    }
}

/// The parts of a day's bar, from the floor up.
fn stacked(day: &PeriodCounts, floor: i64, height: impl Fn(i64) -> i64) -> Vec<Part> {
    let counts = &day.counts;
    let bounced = counts.bounced(None);
    let of = |status| counts.sum(None, Some(status));
    let mut y = floor;
    let mut parts = Vec::new();
    for (class, count) in [
        ("good", of(LogStatus::Sent) - bounced),
        ("busy", of(LogStatus::FailedTemp)),
        ("soft", bounced),
        ("bad", of(LogStatus::FailedPerm)),
    ] {
        let height = height(count);
        if height > 0 {
            y -= height;
            parts.push(Part { class, y, height });
        }
    }
    parts
}

fn title(day: &PeriodCounts) -> String {
    let counts = &day.counts;
    let of = |status| number(counts.sum(None, Some(status)));
    format!(
        "{}: {} sent, {} bounced, {} failed, {} waiting",
        day.start.format("%-d %b"),
        of(LogStatus::Sent),
        number(counts.bounced(None)),
        of(LogStatus::FailedPerm),
        of(LogStatus::FailedTemp),
    )
}

fn path(day: &PeriodCounts, app: &str) -> String {
    let date = day.start.to_string();
    let mut parameters = vec![("from_date", date.as_str()), ("to_date", date.as_str())];
    if !app.is_empty() {
        parameters.push(("app", app));
    }
    format!("/portal/messages?{}", query(&parameters))
}

/// The next of 2, 10, 20, 100, 200, 1 000 and so on, or of 4 in between: its half is a whole number.
fn rounded(most: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        for step in [2, 4, 10] {
            let top = power.saturating_mul(step);
            if top >= most {
                return top;
            }
        }
        power = power.saturating_mul(10);
    }
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
            assert_eq!(scaled(count, most, 60), expected, "{count} of {most}");
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (most, top) in [
            (0, 2),
            (2, 2),
            (3, 4),
            (5, 10),
            (11, 20),
            (146, 200),
            (201, 400),
            (401, 1_000),
            (i64::MAX, i64::MAX),
        ] {
            assert_eq!(rounded(most), top, "{most}");
        }
    }
}
