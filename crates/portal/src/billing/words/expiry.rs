//! Until when a card is valid.

use chrono::{DateTime, TimeDelta, Utc};

use super::badge;
use crate::page::words::Status;

/// Until when a card is valid, and whether that has passed or is close.
pub(crate) fn expiry(expires: (i32, u32), now: DateTime<Utc>) -> Option<(String, Option<Status>)> {
    let (year, month) = expires;
    let next = if month == 12 {
        (year.checked_add(1)?, 1)
    } else {
        (year, month + 1)
    };
    let first = chrono::NaiveDate::from_ymd_opt(next.0, next.1, 1)?;
    let end = first.and_time(chrono::NaiveTime::MIN).and_utc();
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
