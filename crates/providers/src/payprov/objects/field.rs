//! The values of fields, checked: IDs, times, currencies, pages.

use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Longest id from the provider that is accepted, in bytes; Stripe asks for 255.
const ID_LENGTH: usize = 255;

/// Whether a string can be an id from the provider: it is used in paths and the database.
#[must_use]
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_LENGTH
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Longest page URL that is stored, in bytes.
const PAGE_LENGTH: usize = 2_048;

/// The start of the year 10000, beyond the range of calendars, in seconds since 1970.
const END_OF_TIME: i64 = 253_402_300_800;

/// A time in seconds since 1970; `None` if it is out of range for a subscription.
pub(super) fn moment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let seconds = Option::<serde_json::Number>::deserialize(deserializer)?;
    let seconds = seconds.and_then(|seconds| seconds.as_i64());
    let seconds = seconds.filter(|seconds| (0..END_OF_TIME).contains(seconds));
    Ok(seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)))
}

/// An id that is safe for paths and the database.
pub(super) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    if is_id(&id) {
        Ok(id)
    } else {
        Err(D::Error::custom("an id is none"))
    }
}

/// As [`moment`], of any value: `None` for anything else.
pub(super) fn any_moment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let seconds = Value::deserialize(deserializer)?.as_i64();
    let seconds = seconds.filter(|seconds| (0..END_OF_TIME).contains(seconds));
    Ok(seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)))
}

/// A text to store and to show, without control characters; empty if there is none, or it is too long.
pub(super) fn words(value: Option<&Value>, length: usize) -> String {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    if text.len() > length {
        return String::new();
    }
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// Whether a text has the three letters of a currency (ISO 4217).
pub(super) fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The three letters of a currency (ISO 4217), or none.
pub(super) fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(if is_currency(&text) {
        text
    } else {
        String::new()
    })
}

/// A page URL to store; `None` if it is too long or unsafe for the database.
pub(super) fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| text.len() <= PAGE_LENGTH && !text.contains(char::is_control)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_a_path() {
        for (text, good) in [
            ("cus_NffrFeUfNV2Hib", true),
            ("price-1", true),
            ("", false),
            ("../secrets", false),
            ("a b", false),
            ("ü", false),
            ("a\0", false),
        ] {
            assert_eq!(is_id(text), good, "{text:?}");
        }
        assert!(!is_id(&"a".repeat(256)));
    }
}
