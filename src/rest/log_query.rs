//! The query of `GET /logs`, and what is right of it.

use std::fmt::Display;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::{FieldError, Problem};
use crate::reports::{AppReference, Filter};
use crate::types::log_status::LogStatus;
use crate::types::plugin::Plugin;

/// Rows of a page, unless the caller says how many, and at most.
const LIMIT: u32 = 20;
const LARGEST: u32 = 100;

/// Which messages.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Messages at most.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20)]
    limit: Option<String>,
    /// Messages to skip.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 4_294_967_295_i64, default = 0)]
    offset: Option<String>,
    /// Of one app: its UUID, or its `app_id` (the slug). No messages for an app that isn't yours.
    #[param(pattern = "^[a-z0-9-]{1,69}$")]
    app_id: Option<String>,
    /// Of one status: `sent`, `failed_temp` or `failed_perm`.
    #[param(pattern = "^(sent|failed_temp|failed_perm)$")]
    status: Option<String>,
    /// Of one plugin: `plugin_a` or `plugin_b_alt`.
    #[param(pattern = "^(plugin_a|plugin_b_alt)$")]
    plugin: Option<String>,
    /// From this moment on: ISO 8601, with an offset or else in UTC; without a time, from the beginning
    /// of that day (UTC).
    #[param(
        example = "2026-11-01",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    from_date: Option<String>,
    /// Up to this moment, itself included: ISO 8601, with an offset or else in UTC; without a time, to the
    /// end of that day (UTC).
    #[param(
        example = "2026-11-30T12:00:00+01:00",
        pattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?$"
    )]
    to_date: Option<String>,
}

/// The page that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) filter: Filter,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

impl LogQuery {
    /// Checks all of it; tells everything that is wrong at once.
    pub(super) fn validate(self) -> Result<Wanted, Problem> {
        let mut errors = Vec::new();
        let limit = take(&mut errors, "limit", self.limit, |text| {
            number(text, 1, LARGEST)
                .ok_or_else(|| format!("must be a whole number from 1 to {LARGEST}"))
        });
        let offset = take(&mut errors, "offset", self.offset, |text| {
            number(text, 0, u32::MAX).ok_or("must be a whole number of 0 or more")
        });
        let filter = Filter {
            app: take(&mut errors, "app_id", self.app_id, AppReference::parse),
            status: take(&mut errors, "status", self.status, str::parse::<LogStatus>),
            plugin: take(&mut errors, "plugin", self.plugin, Plugin::from_log_name),
            from: take(&mut errors, "from_date", self.from_date, |text| {
                date(text).map(Date::first).ok_or(DATE)
            }),
            before: take(&mut errors, "to_date", self.to_date, |text| {
                date(text).map(Date::behind).ok_or(DATE)
            }),
        };
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(Wanted {
            filter,
            limit: limit.unwrap_or(LIMIT).into(),
            offset: offset.unwrap_or(0).into(),
        })
    }
}

/// What is told of a date that can't be read.
const DATE: &str =
    "must be a date or a moment by ISO 8601, such as 2026-11-30 or 2026-11-30T12:00:00Z";

/// Reads a parameter where it is given, and notes what is wrong with it.
fn take<T, E: Display>(
    errors: &mut Vec<FieldError>,
    field: &'static str,
    text: Option<String>,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    match read(&text?) {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(FieldError::new(field, error.to_string()));
            None
        }
    }
}

fn number(text: &str, smallest: u32, largest: u32) -> Option<u32> {
    let number = text.parse().ok()?;
    (smallest..=largest).contains(&number).then_some(number)
}

/// What a caller may give as a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Date {
    Day(NaiveDate),
    Moment(DateTime<Utc>),
}

impl Date {
    /// Its first whole millisecond: rows have no finer moments.
    fn first(self) -> DateTime<Utc> {
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

    /// The millisecond behind its last.
    fn behind(self) -> DateTime<Utc> {
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

/// Without what is finer.
fn milliseconds(moment: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(moment.timestamp_millis()).unwrap_or(moment)
}

/// Reads a date, or a moment with an offset or in UTC. A `+` that wasn't written as `%2B` comes as a
/// space, and is taken for what was meant.
fn date(text: &str) -> Option<Date> {
    // Years of four digits, and nothing that a lenient parser would skip.
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
            number in "[+-]?[0-9]{0,25}",
        ) {
            if let Some(date) = date(&text) {
                prop_assert!(date.first() <= date.behind());
            }
            let _ = super::number(&number, 0, u32::MAX);
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong = |text: &str| Some(text.to_owned());
        let query = LogQuery {
            limit: wrong("101"),
            offset: wrong("-1"),
            app_id: wrong("Demo"),
            status: wrong("open"),
            plugin: wrong("plugin_b"),
            from_date: wrong("x"),
            to_date: wrong(""),
        };
        let problem = query.validate().err().map(|problem| format!("{problem:?}"));
        let problem = problem.unwrap_or_default();
        for field in [
            "limit",
            "offset",
            "app_id",
            "status",
            "plugin",
            "from_date",
            "to_date",
        ] {
            assert!(
                problem.contains(&format!("field: \"{field}\"")),
                "{field}: {problem}"
            );
        }
    }

    #[test]
    fn what_is_not_given() {
        let wanted = LogQuery::default().validate().map_err(|_| ());
        let page = wanted.as_ref().map(|it| (it.limit, it.offset));
        assert_eq!(page, Ok((20, 0)));
        assert!(wanted.is_ok_and(|it| it.filter.from.is_none() && it.filter.before.is_none()));
    }
}
