//! Dates in queries: an ISO 8601 day or moment.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc};

/// A date as given by a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Date {
    /// A day in UTC.
    Day(NaiveDate),
    /// A moment.
    Moment(DateTime<Utc>),
}

/// The text isn't a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a date or a moment by ISO 8601, such as 2026-11-30 or 2026-11-30T12:00:00Z")]
pub struct NoDate;

impl Date {
    /// Parses a date, or a moment in UTC or with an offset. An unescaped `+` arrives as a space, and is accepted.
    pub fn parse(text: &str) -> Result<Self, NoDate> {
        date(text).ok_or(NoDate)
    }

    /// Its first whole millisecond, the resolution of rows.
    #[must_use]
    pub fn first(self) -> DateTime<Utc> {
        match self {
            Self::Day(day) => midnight(day),
            Self::Moment(moment) => {
                let whole = milliseconds(moment);
                if whole == moment {
                    whole
                } else {
                    whole.checked_add_signed(MILLISECOND).unwrap_or(whole)
                }
            }
        }
    }

    /// The millisecond after its last.
    #[must_use]
    pub fn behind(self) -> DateTime<Utc> {
        match self {
            Self::Day(day) => midnight(day.checked_add_days(Days::new(1)).unwrap_or(day)),
            Self::Moment(moment) => {
                let whole = milliseconds(moment);
                whole.checked_add_signed(MILLISECOND).unwrap_or(whole)
            }
        }
    }
}

const MILLISECOND: TimeDelta = TimeDelta::milliseconds(1);

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(chrono::NaiveTime::MIN).and_utc()
}

/// Truncates to milliseconds.
fn milliseconds(moment: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(moment.timestamp_millis()).unwrap_or(moment)
}

fn date(text: &str) -> Option<Date> {
    // Four-digit years, and nothing that a lenient parser would skip.
    let is_plain = text.len() <= 40
        && text.as_bytes().get(..4)?.iter().all(u8::is_ascii_digit)
        && text.as_bytes().get(4) == Some(&b'-');
    if !is_plain {
        return None;
    }
    if text.len() == 10 {
        return NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()
            .map(Date::Day);
    }
    let mended = match text.rsplit_once(' ') {
        Some((moment, offset)) if moment.contains('T') => format!("{moment}+{offset}"),
        _ => text.to_owned(),
    };
    let with_offset = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"]
        .iter()
        .find_map(|form| DateTime::parse_from_str(&mended, form).ok())
        .map(|moment| moment.to_utc());
    let in_utc = || {
        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(&mended, form).ok())
            .map(|moment| moment.and_utc())
    };
    with_offset.or_else(in_utc).map(Date::Moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(text: &str) -> Option<String> {
        date(text).map(|date| date.first().to_rfc3339())
    }

    fn behind(text: &str) -> Option<String> {
        date(text).map(|date| date.behind().to_rfc3339())
    }

    #[test]
    fn dates() {
        for (text, from, before) in [
            (
                "2026-02-28",
                "2026-02-28T00:00:00+00:00",
                "2026-03-01T00:00:00+00:00",
            ),
            (
                "2026-02-28T10:00:00Z",
                "2026-02-28T10:00:00+00:00",
                "2026-02-28T10:00:00.001+00:00",
            ),
            (
                "2026-02-28T10:00:00.5Z",
                "2026-02-28T10:00:00.500+00:00",
                "2026-02-28T10:00:00.501+00:00",
            ),
            (
                "2026-02-28T10:00:00.1239Z",
                "2026-02-28T10:00:00.124+00:00",
                "2026-02-28T10:00:00.124+00:00",
            ),
            (
                "2026-02-28T10:00:00+02:00",
                "2026-02-28T08:00:00+00:00",
                "2026-02-28T08:00:00.001+00:00",
            ),
            (
                "2026-02-28T10:00:00-0130",
                "2026-02-28T11:30:00+00:00",
                "2026-02-28T11:30:00.001+00:00",
            ),
            (
                "2026-02-28T10:00:00 02:00",
                "2026-02-28T08:00:00+00:00",
                "2026-02-28T08:00:00.001+00:00",
            ),
            (
                "2026-02-28T10:00",
                "2026-02-28T10:00:00+00:00",
                "2026-02-28T10:00:00.001+00:00",
            ),
            (
                "2026-02-28T10:00+01:00",
                "2026-02-28T09:00:00+00:00",
                "2026-02-28T09:00:00.001+00:00",
            ),
            (
                "2026-02-28T10:00:00",
                "2026-02-28T10:00:00+00:00",
                "2026-02-28T10:00:00.001+00:00",
            ),
        ] {
            assert_eq!(first(text).as_deref(), Some(from), "{text}");
            assert_eq!(behind(text).as_deref(), Some(before), "{text}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "yesterday",
            "2026",
            "2026-02",
            "2026-02-30",
            "2026-13-01",
            "26-02-28",
            "+2026-02-28",
            "02026-02-28",
            "2026-2-28",
            "2026-02-28 ",
            "2026-02-28T",
            "2026-02-28T25:00:00Z",
            "2026-02-28T10:00:00+99:00",
            "2026-02-28T10:00:00Zx",
            "1700000000",
            "2026-02-28\u{0}",
            "2026-02-28T10:00:00\u{661}Z",
        ] {
            assert_eq!(date(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_date_or_none(
            text in "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,12})?)?(Z|[+ -][0-9]{2}:?[0-9]{2})?)?|.{0,50}",
        ) {
            if let Some(date) = date(&text) {
                prop_assert!(date.first() <= date.behind());
            }
        }
    }
}
