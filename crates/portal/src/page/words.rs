//! Display texts for statuses, actions, times and numbers.

use chrono::{DateTime, Utc};

use mailgate_domain::reports::LogRow;
use mailgate_types::door::Door;
use mailgate_types::grouped::grouped;
use mailgate_types::log_status::LogStatus;
use mailgate_types::moment::iso8601;

/// A message's status, as a word and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) word: &'static str,
    /// A class of the stylesheet: `good`, `busy`, `bad` or `plain`.
    pub(crate) class: &'static str,
}

/// For a log status.
pub(crate) const fn status(status: LogStatus) -> Status {
    let (word, class) = match status {
        LogStatus::Sent => ("Sent", "good"),
        LogStatus::FailedTemp => ("Retrying", "busy"),
        LogStatus::FailedPerm => ("Failed", "bad"),
    };
    Status { word, class }
}

/// For a scheduled message.
pub(crate) const fn scheduled() -> Status {
    Status {
        word: "Scheduled",
        class: "busy",
    }
}

/// For a logged message. One that its subscriber cancelled didn't fail.
pub(crate) fn logged(log: &LogRow) -> Status {
    if log.is_cancelled() {
        cancelled()
    } else if log.bounced {
        Status {
            word: "Bounced",
            class: "bad",
        }
    } else {
        status(log.status)
    }
}

/// For a cancelled message.
pub(crate) const fn cancelled() -> Status {
    Status {
        word: "Cancelled",
        class: "plain",
    }
}

/// A time for the `time` and `when` macros: machine-readable, and as shown without scripts.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) iso: String,
    pub(crate) utc: String,
    /// For lists, to the minute.
    pub(crate) short: String,
}

impl Moment {
    pub(crate) fn new(at: DateTime<Utc>) -> Self {
        Self {
            iso: iso8601(at),
            utc: at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
            short: at.format("%Y-%m-%d %H:%M").to_string(),
        }
    }
}

/// The interface by which a message was submitted.
pub(crate) fn door(door: Door) -> &'static str {
    match door {
        Door::Rest => "REST",
        Door::Smtp => "SMTP",
    }
}

/// A duration in milliseconds: 340 ms, 2.4 s, 61 s.
pub(crate) fn duration(milliseconds: i64) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds} ms"),
        1_000..10_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} s", number(milliseconds / 1_000)),
    }
}

/// A size: 812 bytes, 14 kB, 2.5 MB.
pub(crate) fn size(bytes: i64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A count as a length, of which `most` has `units`; a count above zero is always visible.
pub(crate) fn scaled(count: i64, most: i64, units: i64) -> i64 {
    if count <= 0 || most <= 0 {
        return 0;
    }
    let length = i128::from(count) * i128::from(units) / i128::from(most);
    i64::try_from(length).unwrap_or(units).max(1)
}

/// With thin separators: 12 345.
pub(crate) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let sign = if number < 0 { "−" } else { "" };
    format!("{sign}{}", grouped(&digits, "\u{202f}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_rounded_down() {
        let durations = [0, 999, 1_000, 2_490, 9_999, 10_000, 1_234_567].map(duration);
        assert_eq!(
            durations,
            [
                "0 ms",
                "999 ms",
                "1.0 s",
                "2.4 s",
                "9.9 s",
                "10 s",
                "1\u{202f}234 s"
            ]
        );
        let sizes = [1, 999, 1_000, 999_999, 2_560_000].map(size);
        assert_eq!(sizes, ["1 bytes", "999 bytes", "1 kB", "999 kB", "2.5 MB"]);
    }

    #[test]
    fn numbers_have_thin_separators() {
        for (given, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (-1_234_567, "−1\u{202f}234\u{202f}567"),
        ] {
            assert_eq!(number(given), expected);
        }
    }
}
