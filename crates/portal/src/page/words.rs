//! Display texts for statuses, actions, times and numbers.

use chrono::{DateTime, Utc};

use mailgate_domain::reports::LogRow;
use mailgate_types::door::Door;
use mailgate_types::log_status::CANCELLED;
use mailgate_types::moment::iso8601;

/// A message's status, as a word and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) word: &'static str,
    /// A class of the stylesheet: `good`, `busy`, `bad` or `plain`.
    pub(crate) class: &'static str,
}

/// For a log status.
pub(crate) fn status(status: &str, bounced: bool) -> Status {
    let (word, class) = match (status, bounced) {
        (_, true) => ("Bounced", "bad"),
        ("sent", _) => ("Sent", "good"),
        ("failed_temp", _) => ("Waiting to retry", "busy"),
        ("failed_perm", _) => ("Failed", "bad"),
        ("scheduled", _) => ("Scheduled", "busy"),
        _ => ("Unknown", "plain"),
    };
    Status { word, class }
}

/// For a logged message. One that its subscriber cancelled didn't fail.
pub(crate) fn logged(log: &LogRow) -> Status {
    if is_cancelled(log) {
        cancelled()
    } else {
        status(log.status.as_str(), log.bounced)
    }
}

/// Whether its subscriber has cancelled it.
pub(crate) fn is_cancelled(log: &LogRow) -> bool {
    log.error_message.as_deref() == Some(CANCELLED)
}

/// For a cancelled message.
pub(crate) const fn cancelled() -> Status {
    Status {
        word: "Cancelled",
        class: "plain",
    }
}

/// A time for the `time` macro: machine-readable, and as shown without scripts.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) iso: String,
    pub(crate) utc: String,
}

impl Moment {
    pub(crate) fn new(at: DateTime<Utc>) -> Self {
        Self {
            iso: iso8601(at),
            utc: at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
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

/// With thin separators: 12 345.
pub(crate) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "−" } else { "" }.to_owned();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
