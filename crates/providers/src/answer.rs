//! An HTTP response from a provider: read up to a limit, with untrusted text made safe for a log line and a database.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::Response;
use reqwest::header::RETRY_AFTER;
use serde_json::Value;

use mailgate_types::one_line;

/// Longest error description that is kept, in bytes.
const DESCRIPTION_LENGTH: usize = 300;

/// The longest Retry-After that is honoured.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// A provider's response.
#[derive(Debug, Clone)]
pub(super) struct ProviderResponse {
    /// HTTP status.
    pub(super) status: u16,
    /// From its Retry-After header.
    pub(super) retry_after: Option<Duration>,
    /// Null if the content isn't JSON, is too long, or was cut off.
    pub(super) body: Value,
    /// The content exceeds the limit.
    pub(super) is_too_long: bool,
}

impl ProviderResponse {
    /// Reads a response of at most `maximum` bytes. The status is kept even if reading the rest fails.
    pub(super) async fn read(mut response: Response, maximum: usize, now: DateTime<Utc>) -> Self {
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, Some(now)));
        let mut content = Vec::new();
        let mut is_too_long = false;
        let body = loop {
            match response.chunk().await {
                Ok(Some(chunk)) if content.len() + chunk.len() <= maximum => {
                    content.extend_from_slice(&chunk);
                }
                Ok(None) => break serde_json::from_slice(&content).unwrap_or_default(),
                Ok(Some(_)) => {
                    is_too_long = true;
                    break Value::Null;
                }
                Err(_) => break Value::Null,
            }
        };
        Self {
            status,
            retry_after,
            body,
            is_too_long,
        }
    }
}

/// The delay that a Retry-After header asks for: seconds, or an HTTP date (RFC 9110 §10.2.3), which needs the current
/// time to interpret.
pub(crate) fn retry_after(value: &str, now: Option<DateTime<Utc>>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse is long enough, too.
        let seconds = value.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    until(DateTime::parse_from_rfc2822(value).ok()?.to_utc(), now?)
}

/// The time until `at`, if that is in the future.
pub(super) fn until(at: DateTime<Utc>, now: DateTime<Utc>) -> Option<Duration> {
    let wait = (at - now).to_std().ok()?;
    Some(wait.min(LONGEST_WAIT))
}

/// Untrusted text, made safe for a log line and a database.
pub(super) fn one_line(text: &str) -> String {
    one_line::one_line(text, DESCRIPTION_LENGTH)
}

/// Why there is no response, with all its causes, on one line.
pub(crate) fn no_answer(error: reqwest::Error) -> String {
    one_line(&causes(error))
}

/// An error with all its causes.
pub(super) fn causes(error: reqwest::Error) -> String {
    // The URL may carry parameters; the cause is in the sources.
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_to_wait() {
        let now = DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z")
            .unwrap()
            .to_utc();
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999", Some(86_400)),
            ("99999999999999999999999999", Some(86_400)),
            ("18446744073709551615", Some(86_400)),
            ("+1", None),
            ("Sun, 01 Mar 2026 12:01:30 GMT", Some(90)),
            ("Sun, 01 Mar 2026 11:59:00 GMT", None),
            ("Thu, 31 Dec 2099 23:59:59 GMT", Some(86_400)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(value, Some(now)), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_value_asks_for_more_than_a_day(value in "[0-9]{1,40}|.{0,60}|(Thu, )?[0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,9} [0-9]{1,3}:[0-9]{2}:[0-9]{2} (GMT|[+-][0-9]{4})", now: i64) {
            let now = DateTime::from_timestamp(now, 0).unwrap_or(DateTime::<Utc>::MIN_UTC);
            let wait = retry_after(&value, Some(now));
            prop_assert!(wait.is_none_or(|wait| wait <= LONGEST_WAIT));
        }

        #[test]
        fn any_two_moments_have_a_wait_or_none(one: i64, other: i64) {
            let moment = |seconds| DateTime::from_timestamp(seconds, 0);
            let [one, other] = [one, other].map(|at| moment(at % 8_000_000_000_000).unwrap());
            let wait = until(one, other);
            prop_assert!(wait.is_none_or(|wait| wait <= LONGEST_WAIT));
        }
    }
}
