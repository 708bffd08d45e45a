//! An endpoint's seven days as bars, drawn by the server, and as text.

use crate::page::words::{number, scaled};
use mailgate_domain::webhooks::EndpointReport;

/// Height of the highest bar, in the drawing's units.
const HEIGHT: i64 = 40;

/// The distance between bars.
const STEP: usize = 16;

/// A day.
pub(crate) struct Bar {
    pub(crate) x: usize,
    /// The failed part is stacked on the successful one.
    pub(crate) good_y: i64,
    pub(crate) good_height: i64,
    pub(crate) bad_y: i64,
    pub(crate) bad_height: i64,
    pub(crate) day: String,
    pub(crate) successes: String,
    pub(crate) failures: String,
}

/// Seven days.
pub(crate) struct Week {
    pub(crate) rate: String,
    pub(crate) words: String,
    pub(crate) bars: Vec<Bar>,
}

impl Week {
    pub(crate) fn new(report: &EndpointReport) -> Self {
        let totals = report.days.iter().map(|day| day.successes + day.failures);
        let highest = totals.max().unwrap_or_default();
        let bars = report.days.iter().enumerate().map(|(position, day)| {
            let good_height = height(day.successes, highest);
            let bad_height = height(day.failures, highest);
            Bar {
                x: position * STEP,
                good_y: HEIGHT - good_height,
                good_height,
                bad_y: HEIGHT - good_height - bad_height,
                bad_height,
                day: day.day.format("%Y-%m-%d").to_string(),
                successes: number(day.successes),
                failures: number(day.failures),
            }
        });
        Self {
            rate: rate(report.successes, report.attempts),
            words: format!(
                "{} of {} attempts accepted",
                number(report.successes),
                number(report.attempts)
            ),
            bars: bars.collect(),
        }
    }
}

fn height(count: i64, highest: i64) -> i64 {
    scaled(count, highest, HEIGHT - 2)
}

/// In percent; 100 only if nothing failed.
fn rate(successes: i64, attempts: i64) -> String {
    if attempts == 0 {
        return "No deliveries".to_owned();
    }
    let tenths = i128::from(successes) * 1_000 / i128::from(attempts);
    match tenths % 10 {
        0 => format!("{}%", tenths / 10),
        tenth => format!("{}.{tenth}%", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (successes, attempts, expected) in [
            (0, 0, "No deliveries"),
            (0, 3, "0%"),
            (2, 3, "66.6%"),
            (9_999, 10_000, "99.9%"),
            (7, 7, "100%"),
        ] {
            assert_eq!(rate(successes, attempts), expected);
        }
    }

    #[test]
    fn bars_stay_in_the_drawing() {
        for (good, bad) in [(0, 0), (1, 0), (0, 1), (1, 1_000_000), (i64::MAX / 2, 1)] {
            let highest = good + bad;
            let together = height(good, highest) + height(bad, highest);
            assert!(together <= HEIGHT, "{good} {bad}");
            assert_eq!(height(bad, highest) > 0, bad > 0);
        }
    }
}
