//! The tiles: the last seven days in numbers, against the seven before.

use crate::page::frame::query;
use crate::page::words::number;
use mailgate_domain::reports::PeriodCounts;
use mailgate_types::log_status::LogStatus;

/// Days that a tile sums up.
const DAYS: usize = 7;

/// A number with its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) name: &'static str,
    pub(crate) number: String,
    /// The comparison.
    pub(crate) note: String,
    /// The messages behind it.
    pub(crate) path: String,
}

/// The sums of some days.
#[derive(Default)]
struct Sums {
    sent: i64,
    failed: i64,
    bounced: i64,
    waiting: i64,
}

impl Sums {
    fn of(days: &[PeriodCounts]) -> Self {
        let mut sums = Self::default();
        for PeriodCounts { counts, .. } in days {
            sums.sent += counts.sum(None, Some(LogStatus::Sent));
            sums.failed += counts.sum(None, Some(LogStatus::FailedPerm));
            sums.waiting += counts.sum(None, Some(LogStatus::FailedTemp));
            sums.bounced += counts.bounced(None);
        }
        sums
    }
}

/// For an app, or for all.
pub(crate) fn tiles(days: &[PeriodCounts], scheduled: Option<i64>, app: &str) -> [Tile; 4] {
    let (rest, week) = days.split_at(days.len().saturating_sub(DAYS));
    let before = Sums::of(&rest[rest.len().saturating_sub(DAYS)..]);
    let since = week.first().map(|day| day.start.to_string());
    let since = since.unwrap_or_default();
    let (now, all) = (Sums::of(week), Sums::of(days));
    let path = |status: &str| {
        let parameters = [("status", status), ("from_date", &since), ("app", app)];
        let given: Vec<_> = (parameters.into_iter())
            .filter(|(_, value)| !value.is_empty())
            .collect();
        format!("/portal/messages?{}", query(&given))
    };
    [
        Tile {
            name: "Sent",
            number: number(now.sent),
            note: change(now.sent, before.sent),
            path: path("sent"),
        },
        Tile {
            name: "Success rate",
            number: share(now.sent, now.sent + now.failed),
            note: format!("{} failed", number(now.failed)),
            path: path("failed_perm"),
        },
        Tile {
            name: "Bounced",
            number: number(now.bounced),
            note: change(now.bounced, before.bounced),
            path: path("bounced"),
        },
        Tile {
            name: "Waiting now",
            number: number(all.waiting + scheduled.unwrap_or_default()),
            note: match scheduled {
                Some(scheduled) => format!(
                    "{} retrying · {} scheduled",
                    number(all.waiting),
                    number(scheduled)
                ),
                None => format!("{} retrying", number(all.waiting)),
            },
            path: match app {
                "" => "/portal/messages?status=failed_temp".to_owned(),
                app => format!(
                    "/portal/messages?{}",
                    query(&[("status", "failed_temp"), ("app", app)])
                ),
            },
        },
    ]
}

/// `98.4 %`, rounded down, so that only all is 100 %.
fn share(part: i64, all: i64) -> String {
    if all <= 0 {
        return "–".to_owned();
    }
    let tenths = i128::from(part) * 1_000 / i128::from(all);
    if tenths == 1_000 {
        return "100 %".to_owned();
    }
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Against the period before.
fn change(now: i64, before: i64) -> String {
    if before == 0 {
        return match now {
            0 => "same as the week before".to_owned(),
            _ => "none in the week before".to_owned(),
        };
    }
    let percent = i128::from(now - before) * 100 / i128::from(before);
    match percent {
        0 => "same as the week before".to_owned(),
        1.. => format!("+{percent} % vs. the week before"),
        _ => format!("−{} % vs. the week before", -percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_changes() {
        for (part, all, shown) in [
            (0, 0, "–"),
            (1, 1, "100 %"),
            (9_999, 10_000, "99.9 %"),
            (0, 5, "0.0 %"),
        ] {
            assert_eq!(share(part, all), shown);
        }
        for (now, before, shown) in [
            (0, 0, "same as the week before"),
            (5, 0, "none in the week before"),
            (15, 10, "+50 % vs. the week before"),
            (5, 10, "−50 % vs. the week before"),
            (1_000, 1_001, "same as the week before"),
        ] {
            assert_eq!(change(now, before), shown);
        }
    }
}
