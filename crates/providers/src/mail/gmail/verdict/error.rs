//! The parts of a Gmail API error: its reasons, its message, and the time in it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::answer::{ProviderResponse, one_line, until};

/// The text before the time in an error.
pub(super) const RETRY_AFTER: &str = "Retry after ";

/// Every error reason, in the old error format and in the new one.
pub(super) fn reasons_of(body: &Value) -> impl Iterator<Item = &str> {
    let error = &body["error"];
    let reasons_in = |list: &'static str| {
        (error[list].as_array().into_iter().flatten()).filter_map(|entry| entry["reason"].as_str())
    };
    reasons_in("errors")
        .chain(reasons_in("details"))
        .chain(error["status"].as_str())
}

pub(super) fn message_of(body: &Value) -> &str {
    body["error"]["message"].as_str().unwrap_or_default()
}

/// `User-rate limit exceeded.  Retry after 2020-01-21T12:57:51.196Z (Mail sending)`
pub(super) fn named_time(message: &str, now: DateTime<Utc>) -> Option<Duration> {
    let (_, rest) = message.split_once(RETRY_AFTER)?;
    let at = rest.split_whitespace().next()?.trim_end_matches('.');
    until(DateTime::parse_from_rfc3339(at).ok()?.to_utc(), now)
}

/// One line: `HTTP 403 insufficientPermissions: Request had insufficient authentication scopes.`
pub(super) fn text(answer: &ProviderResponse) -> String {
    let (reason, message) = (reasons_of(&answer.body).next(), message_of(&answer.body));
    let mut text = format!("HTTP {}", answer.status);
    for (separator, words) in [(" ", reason.unwrap_or_default()), (": ", message)] {
        if !words.is_empty() {
            text.push_str(separator);
            text.push_str(words);
        }
    }
    one_line(&text)
}
