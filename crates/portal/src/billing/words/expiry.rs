//! Until when a card is valid.

use chrono::{DateTime, Months, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::badge;
use crate::page::words::Status;

/// Until when a card is valid, and whether that has passed or is close.
pub(crate) fn expiry(expires: (i32, u32), now: DateTime<Utc>) -> Option<(String, Option<Status>)> {
    let (year, month) = expires;
    let first = NaiveDate::from_ymd_opt(year, month, 1)?;
    let next = first.checked_add_months(Months::new(1))?;
    let end = next.and_time(NaiveTime::MIN).and_utc();
    let status = if end <= now {
        Some(badge("Expired", "bad"))
    } else if end - now <= SOON {
        Some(badge("Expires soon", "busy"))
    } else {
        None
    };
    Some((format!("{month:02}/{year}"), status))
}

/// How long before its end a card expires soon.
const SOON: TimeDelta = TimeDelta::days(60);
