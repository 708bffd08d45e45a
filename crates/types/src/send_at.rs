//! The time for which a message is scheduled.

use chrono::{DateTime, TimeDelta, Utc};

/// The longest time ahead.
pub const FURTHEST: TimeDelta = TimeDelta::days(30);

/// Maximum length of a time's text, in octets: no valid time is longer.
const TEXT_LENGTH: usize = 100;

/// A scheduled time, in whole milliseconds like all times of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendAt(DateTime<Utc>);

/// Why a message can't be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendAtError {
    /// The text isn't a time.
    #[error("must be a time with an offset by RFC 3339, such as 2026-12-24T09:00:00+01:00")]
    NoTime,
    /// It is now, or in the past.
    #[error("must be later than now")]
    Past,
    /// It is too far ahead.
    #[error("may be 30 days ahead at most")]
    TooFar,
}

impl SendAt {
    /// Parses an RFC 3339 time, up to 30 days from `now`. It may be in the past: the caller checks [`SendAt::is_ahead`]
    /// once it knows that this isn't the repetition of an earlier request.
    pub fn parse(text: &str, now: DateTime<Utc>) -> Result<Self, SendAtError> {
        Self::checked(rfc3339(text), now)
    }

    /// Like [`SendAt::parse`], but also accepts dates in the form of message headers (RFC 5322 §3.3).
    pub fn parse_header(text: &str, now: DateTime<Utc>) -> Result<Self, SendAtError> {
        let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let date = || {
            let is_short = text.len() <= TEXT_LENGTH;
            let date = is_short.then(|| DateTime::parse_from_rfc2822(&text));
            date?.ok().map(|time| time.to_utc())
        };
        Self::checked(rfc3339(&text).or_else(date), now)
    }

    fn checked(time: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<Self, SendAtError> {
        let time = time
            .and_then(up_to_milliseconds)
            .ok_or(SendAtError::NoTime)?;
        if time - now > FURTHEST {
            return Err(SendAtError::TooFar);
        }
        Ok(Self(time))
    }

    /// Whether it is later than `now`.
    #[must_use]
    pub fn is_ahead(self, now: DateTime<Utc>) -> bool {
        self.0 > now
    }

    /// The time.
    #[must_use]
    pub fn time(self) -> DateTime<Utc> {
        self.0
    }
}

/// Parses a time with `T` (RFC 3339 §5.6) and an offset.
pub(crate) fn rfc3339(text: &str) -> Option<DateTime<Utc>> {
    let is_plain =
        text.len() <= TEXT_LENGTH && matches!(text.as_bytes().get(10), Some(b'T' | b't'));
    let time = is_plain.then(|| DateTime::parse_from_rfc3339(text))?;
    time.ok().map(|time| time.to_utc())
}

/// The time, rounded up to a whole millisecond: a message is never sent early.
fn up_to_milliseconds(time: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let whole = DateTime::from_timestamp_millis(time.timestamp_millis())?;
    if whole < time && time.timestamp_subsec_nanos() < 1_000_000_000 {
        whole.checked_add_signed(TimeDelta::milliseconds(1))
    } else {
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> DateTime<Utc> {
        "2026-02-01T12:00:00Z".parse().unwrap_or_default()
    }

    /// Includes the later check.
    fn shown(at: SendAt) -> Result<String, SendAtError> {
        let is_ahead = at.is_ahead(now());
        is_ahead
            .then(|| at.time().to_rfc3339())
            .ok_or(SendAtError::Past)
    }

    fn read(text: &str) -> Result<String, SendAtError> {
        SendAt::parse(text, now()).map(shown)?
    }

    fn read_header(text: &str) -> Result<String, SendAtError> {
        SendAt::parse_header(text, now()).map(shown)?
    }

    #[test]
    fn times_with_an_offset() {
        for (text, expected) in [
            ("2026-02-01T12:00:01Z", "2026-02-01T12:00:01+00:00"),
            ("2026-02-01t12:00:01z", "2026-02-01T12:00:01+00:00"),
            ("2026-02-01T13:00:01+01:00", "2026-02-01T12:00:01+00:00"),
            ("2026-02-01T12:00:01-00:00", "2026-02-01T12:00:01+00:00"),
            // Never early.
            ("2026-02-01T12:00:00.0001Z", "2026-02-01T12:00:00.001+00:00"),
            ("2026-02-01T12:00:00.5Z", "2026-02-01T12:00:00.500+00:00"),
            ("2026-02-01T23:59:60Z", "2026-02-02T00:00:00+00:00"),
            ("2026-03-03T12:00:00Z", "2026-03-03T12:00:00+00:00"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
            assert_eq!(read_header(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        use SendAtError::{NoTime, Past, TooFar};
        for (text, error) in [
            ("2026-02-01T12:00:00Z", Past),
            ("2026-02-01T13:00:00+01:00", Past),
            ("1970-01-01T00:00:00Z", Past),
            ("0001-01-01T00:00:00Z", Past),
            ("2026-03-03T12:00:00.001Z", TooFar),
            ("2026-03-03T12:00:00.0001Z", TooFar),
            ("9999-12-31T23:59:59Z", TooFar),
            ("2026-02-01T12:00:01", NoTime),
            ("2026-02-01 12:00:01Z", NoTime),
            ("2026-02-02", NoTime),
            ("2026-02-30T12:00:00Z", NoTime),
            ("2026-02-02T24:00:00Z", NoTime),
            ("+12026-02-02T12:00:00Z", NoTime),
            ("tomorrow", NoTime),
            ("1769947201", NoTime),
            ("", NoTime),
            (" 2026-02-01T12:00:01Z", NoTime),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
        let endless = format!("2026-02-02T12:00:00.{}Z", "0".repeat(200));
        assert_eq!(read(&endless), Err(NoTime));
    }

    #[test]
    fn a_header_may_have_a_date() {
        for (text, expected) in [
            (
                "\r\n 2026-02-01T12:00:01Z \r\n",
                Ok("2026-02-01T12:00:01+00:00"),
            ),
            (
                " Mon, 2 Feb 2026 09:00:00 +0100\r\n",
                Ok("2026-02-02T08:00:00+00:00"),
            ),
            (
                "Mon,\r\n\t2 Feb 2026 09:00:00 GMT",
                Ok("2026-02-02T09:00:00+00:00"),
            ),
            ("2 Feb 2026 09:00:00 +0000", Ok("2026-02-02T09:00:00+00:00")),
            // Not a Tuesday.
            ("Tue, 2 Feb 2026 09:00:00 +0000", Err(SendAtError::NoTime)),
            ("Sat, 31 Jan 2026 09:00:00 +0000", Err(SendAtError::Past)),
            ("soon", Err(SendAtError::NoTime)),
            ("", Err(SendAtError::NoTime)),
        ] {
            assert_eq!(
                read_header(text).as_deref(),
                expected.as_deref(),
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,60}") {
            let _ = (read(&text), read_header(&text));
        }

        #[test]
        fn what_is_accepted_lies_ahead(seconds in -5_000_000_i64..5_000_000, nanos in 0_u32..1_000_000_000) {
            let Some(given) = DateTime::from_timestamp(now().timestamp() + seconds, nanos) else {
                return Ok(());
            };
            let text = given.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true);
            if let Ok(read) = SendAt::parse(&text, now()) {
                prop_assert!(read.time() >= given && read.time() - given < TimeDelta::milliseconds(1));
                prop_assert!(read.time() - now() <= FURTHEST);
                prop_assert_eq!(read.is_ahead(now()), read.time() > now());
            }
        }
    }
}
