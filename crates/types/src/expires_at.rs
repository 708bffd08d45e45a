//! The expiry of a key, as set by its owner.

use chrono::{DateTime, TimeDelta, Utc};

use super::send_at::rfc3339;

/// The longest time ahead: ten years.
const FURTHEST: TimeDelta = TimeDelta::days(3_653);

/// Why a key can't expire at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExpiresAtError {
    /// The text isn't a time.
    #[error("must be a time with an offset by RFC 3339, such as 2026-12-24T09:00:00+01:00")]
    NoTime,
    /// It is now, or in the past.
    #[error("must be later than now")]
    Past,
    /// It is too far ahead.
    #[error("may be ten years ahead at most")]
    TooFar,
}

/// When a key stops working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    Never,
    /// At this time.
    At(DateTime<Utc>),
}

impl Expiry {
    /// The time, if any.
    #[must_use]
    pub const fn time(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(time),
        }
    }
}

/// Parses an RFC 3339 time, later than `now` and at most ten years ahead, truncated to the milliseconds that are shown:
/// a key never works longer than its shown expiry.
///
/// # Errors
///
/// [`ExpiresAtError`].
pub fn parse_expires_at(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, ExpiresAtError> {
    let time =
        rfc3339(text).and_then(|time| DateTime::from_timestamp_millis(time.timestamp_millis()));
    let time = time.ok_or(ExpiresAtError::NoTime)?;
    if time <= now {
        Err(ExpiresAtError::Past)
    } else if time - now > FURTHEST {
        Err(ExpiresAtError::TooFar)
    } else {
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_times_ahead_within_ten_years() {
        let now: DateTime<Utc> = "2026-11-02T09:30:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-02T09:30:00.001Z", Ok("2026-11-02T09:30:00.001Z")),
            ("2026-11-02T10:40:00+01:00", Ok("2026-11-02T09:40:00Z")),
            ("2026-11-02T09:30:00.0009Z", Err(ExpiresAtError::Past)),
            ("2026-11-02T09:30:00Z", Err(ExpiresAtError::Past)),
            ("0000-01-01T00:00:00Z", Err(ExpiresAtError::Past)),
            ("2036-11-02T09:30:00Z", Ok("2036-11-02T09:30:00Z")),
            ("2036-11-03T09:30:00Z", Err(ExpiresAtError::TooFar)),
            ("9999-12-31T23:59:59Z", Err(ExpiresAtError::TooFar)),
            ("9999-12-31T23:59:59-23:59", Err(ExpiresAtError::TooFar)),
            ("10000-01-01T00:00:00Z", Err(ExpiresAtError::NoTime)),
            ("2027-01-01", Err(ExpiresAtError::NoTime)),
            ("tomorrow", Err(ExpiresAtError::NoTime)),
            ("", Err(ExpiresAtError::NoTime)),
        ] {
            let expected = expected.map(|text| text.parse::<DateTime<Utc>>().unwrap());
            assert_eq!(parse_expires_at(text, now), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", year in 0_u32..100_000) {
            let now = DateTime::UNIX_EPOCH;
            let _ = parse_expires_at(&text, now);
            let _ = parse_expires_at(&format!("{year:04}-12-31T23:59:60.999999999-23:59"), now);
        }
    }
}
