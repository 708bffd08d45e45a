//! Common to the forms for new keys: a name, a last day, and the API secret again.

use std::borrow::Cow;

use askama::Template;
use axum::http::StatusCode;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};

use super::fields::{Fields, label, value};
use super::frame::Frame;
use super::wrong::Wrong;
use mailgate_types::expires_at::parse_expires_at;
use mailgate_types::moment::iso8601;

/// The name of a key.
pub(crate) fn checked_name(fields: &Fields, wrong: &mut Wrong) -> String {
    label(value(fields, "name")).unwrap_or_else(|text| {
        wrong.add("name", text);
        String::new()
    })
}

/// The end of a key's last day, in UTC; `None` if the field is empty.
pub(crate) fn checked_end(
    fields: &Fields,
    now: DateTime<Utc>,
    wrong: &mut Wrong,
) -> Option<DateTime<Utc>> {
    let text = value(fields, "last_day");
    if text.is_empty() {
        return None;
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let end = day.and_then(|day| day.checked_add_days(Days::new(1)));
    let end = end.map(|end| end.and_time(NaiveTime::MIN).and_utc());
    // Parsed as in REST, so that both have the same bounds.
    let end = end.and_then(|end| parse_expires_at(&iso8601(end), now).ok());
    if end.is_none() {
        let text = "Enter today or a later day, at most ten years ahead.";
        wrong.add("last_day", text);
    }
    end
}

/// A new key's value, only in the response to its creation.
#[derive(Template)]
#[template(path = "new_key.html")]
pub(crate) struct NewKeyPage<'a> {
    pub(crate) frame: Frame,
    /// Key or secret.
    pub(crate) noun: &'static str,
    /// How to use it.
    pub(crate) hint: &'static str,
    pub(crate) value: &'a str,
    /// The page that ends the key that it may replace.
    pub(crate) former: Option<String>,
    pub(crate) back: Cow<'static, str>,
}

/// The confirmation page for deleting a key.
#[derive(Template)]
#[template(path = "delete_key.html")]
pub(crate) struct DeleteKeyPage {
    pub(crate) frame: Frame,
    pub(crate) name: String,
    pub(crate) action: String,
    pub(crate) back: Cow<'static, str>,
}

/// The status of a form that is shown again.
pub(crate) fn status(wrong: &Wrong) -> StatusCode {
    if wrong.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    }
}
