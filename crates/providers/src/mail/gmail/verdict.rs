//! The meaning of a Gmail API response, by its error reason rather than by its status alone: 403 stands both for a rate
//! limit, which passes, and for a missing permission, which doesn't.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::answer::{ProviderResponse, one_line, until};
use crate::mail::reader::ReadError;
use crate::mail::verdict::{Failure, Verdict};

/// How long to wait once a daily limit is reached.
const DAILY_LIMIT_WAIT: Duration = Duration::from_hours(4);

/// Reasons for a daily limit.
const DAILY: [&str; 2] = ["dailyLimitExceeded", "dailyLimitExceededUnreg"];

/// Reasons for a rate limit: Gmail's own, and those of the API gateway before it.
const RATE: [&str; 5] = [
    "rateLimitExceeded",
    "userRateLimitExceeded",
    "quotaExceeded",
    "RATE_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
];

/// Reasons for an API that the operator has not enabled for the OAuth client's project: Gmail's own, and those of the
/// API gateway before it.
const SWITCHED_OFF: [&str; 3] = ["accessNotConfigured", "SERVICE_DISABLED", "API_DISABLED"];

/// The one failed precondition that is permanent: the account has no Gmail mailbox. Others ("Precondition check
/// failed.") have been reported for one call in a hundred, and pass.
const NO_MAILBOX: &str = "mail service not enabled";

/// The text before the time in an error.
const RETRY_AFTER: &str = "Retry after ";

/// The meaning of a response that isn't a success.
enum Meaning {
    TokenRefused,
    /// Not executed; a retry may succeed.
    Later(Option<Duration>),
    /// The grant, an administrator or the account's own state forbids it.
    Forbidden,
    /// Not executed, and never will be.
    Refused,
    /// It may have been executed.
    Unclear,
}

/// The verdict on a message.
pub(super) fn sent(answer: &ProviderResponse, now: DateTime<Utc>) -> Verdict {
    if (200..300).contains(&answer.status) {
        return match answer.body["id"].as_str() {
            Some(id) if !id.is_empty() => Verdict::sent(),
            _ => Verdict::Unknown(Failure::own(format!(
                "HTTP {} without the id of a message",
                answer.status
            ))),
        };
    }
    let failure = Failure::own(text(answer));
    match meaning(answer, now) {
        Meaning::TokenRefused => Verdict::TokenRefused(failure),
        Meaning::Later(retry_after) => Verdict::Temporary {
            failure,
            retry_after,
        },
        Meaning::Refused if refuses_sender(answer) => Verdict::SenderRefused(failure),
        Meaning::Forbidden | Meaning::Refused => Verdict::Permanent(failure),
        Meaning::Unclear => Verdict::Unknown(failure),
    }
}

/// Whether the sender was rejected, judging by Gmail's wording for headers (`Invalid To header`).
fn refuses_sender(answer: &ProviderResponse) -> bool {
    let text = message_of(&answer.body).to_ascii_lowercase();
    text.starts_with("invalid from header")
}

/// Whether the operator must act.
pub(super) fn is_switched_off(answer: &ProviderResponse) -> bool {
    answer.status == 403 && reasons_of(&answer.body).any(|reason| SWITCHED_OFF.contains(&reason))
}

/// Why a mailbox was not read.
pub(super) fn not_read(answer: &ProviderResponse, now: DateTime<Utc>) -> ReadError {
    let text = text(answer);
    match meaning(answer, now) {
        Meaning::TokenRefused => ReadError::TokenRefused(text),
        Meaning::Forbidden => ReadError::Forbidden(text),
        Meaning::Later(retry_after) => ReadError::Unavailable { text, retry_after },
        Meaning::Refused | Meaning::Unclear => ReadError::Unavailable {
            text,
            retry_after: answer.retry_after,
        },
    }
}

/// Whether a request was not executed, and never will be.
pub(super) fn is_refused(answer: &ProviderResponse, now: DateTime<Utc>) -> bool {
    matches!(meaning(answer, now), Meaning::Refused)
}

fn meaning(answer: &ProviderResponse, now: DateTime<Utc>) -> Meaning {
    let said = |reasons: &[&str]| reasons_of(&answer.body).any(|reason| reasons.contains(&reason));
    let wait = answer
        .retry_after
        .or_else(|| named_time(message_of(&answer.body), now));
    match answer.status {
        500.. => Meaning::Unclear,
        400.. if said(&DAILY) => {
            Meaning::Later(Some(wait.unwrap_or_default().max(DAILY_LIMIT_WAIT)))
        }
        429 => Meaning::Later(wait),
        400.. if said(&RATE) => Meaning::Later(wait),
        401 => Meaning::TokenRefused,
        // It comes from an intermediary between us and Gmail, which gives no reason.
        403 if answer.body["error"].is_null() => Meaning::Later(wait),
        403 if is_switched_off(answer) => Meaning::Later(wait),
        403 => Meaning::Forbidden,
        400 if said(&["failedPrecondition", "FAILED_PRECONDITION"]) => {
            let text = message_of(&answer.body).to_ascii_lowercase();
            if text.contains(NO_MAILBOX) {
                Meaning::Forbidden
            } else {
                Meaning::Later(wait)
            }
        }
        // The server did not receive the whole request (RFC 9110 §15.5.9).
        408 => Meaning::Later(wait),
        400.. => Meaning::Refused,
        // It redirects, and the token must not be sent there.
        300.. => Meaning::Later(wait),
        _ => Meaning::Unclear,
    }
}

/// Every error reason, in the old error format and in the new one.
fn reasons_of(body: &Value) -> impl Iterator<Item = &str> {
    let error = &body["error"];
    let reasons_in = |list: &'static str| {
        (error[list].as_array().into_iter().flatten()).filter_map(|entry| entry["reason"].as_str())
    };
    reasons_in("errors")
        .chain(reasons_in("details"))
        .chain(error["status"].as_str())
}

fn message_of(body: &Value) -> &str {
    body["error"]["message"].as_str().unwrap_or_default()
}

/// `User-rate limit exceeded.  Retry after 2020-01-21T12:57:51.196Z (Mail sending)`
fn named_time(message: &str, now: DateTime<Utc>) -> Option<Duration> {
    let (_, rest) = message.split_once(RETRY_AFTER)?;
    let at = rest.split_whitespace().next()?.trim_end_matches('.');
    until(DateTime::parse_from_rfc3339(at).ok()?.to_utc(), now)
}

/// One line: `HTTP 403 insufficientPermissions: Request had insufficient authentication scopes.`
fn text(answer: &ProviderResponse) -> String {
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn no_named_time_is_beyond_a_day(
            text in "[+-]?[0-9]{1,9}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,12})?(Z|[+-][0-9]{2}:[0-9]{2})|.{0,40}",
        ) {
            let wait = named_time(&format!("{RETRY_AFTER}{text} (Mail sending)"), now());
            prop_assert!(wait.is_none_or(|wait| wait <= Duration::from_hours(24)));
        }
    }

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z")
            .unwrap()
            .to_utc()
    }

    fn answer(status: u16, body: Value) -> ProviderResponse {
        ProviderResponse {
            status,
            retry_after: None,
            body,
            is_too_long: false,
        }
    }

    /// An error as Gmail writes it.
    fn error(code: u16, reason: &str, message: &str, status: &str) -> ProviderResponse {
        answer(
            code,
            json!({ "error": {
                "code": code,
                "message": message,
                "errors": [{ "message": message, "domain": "global", "reason": reason }],
                "status": status,
            } }),
        )
    }

    fn name(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Sent { message_id: None } => "sent",
            Verdict::Sent { .. } => "renamed",
            Verdict::Temporary {
                retry_after: None, ..
            } => "later",
            Verdict::Temporary {
                retry_after: Some(wait),
                ..
            } => match wait.as_secs() {
                14_400 => "in hours",
                90 => "in 90 s",
                _ => "in some time",
            },
            Verdict::Permanent(_) => "never",
            Verdict::SenderRefused(_) => "sender",
            Verdict::Unknown(_) => "unknown",
            Verdict::TokenRefused(_) => "token",
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table with a row for each answer")]
    fn verdicts() {
        let error_403 = |reason, message| error(403, reason, message, "PERMISSION_DENIED");
        for (answer, expected) in [
            (
                answer(
                    200,
                    json!({ "id": "18c1", "threadId": "18c1", "labelIds": ["SENT"] }),
                ),
                "sent",
            ),
            (answer(200, json!({})), "unknown"),
            (answer(200, json!({ "id": "" })), "unknown"),
            (answer(200, Value::Null), "unknown"),
            (answer(204, Value::Null), "unknown"),
            (
                error(
                    400,
                    "invalidArgument",
                    "Invalid To header",
                    "INVALID_ARGUMENT",
                ),
                "never",
            ),
            (
                error(
                    400,
                    "failedPrecondition",
                    "Mail service not enabled",
                    "FAILED_PRECONDITION",
                ),
                "never",
            ),
            (
                error(401, "authError", "Invalid Credentials", "UNAUTHENTICATED"),
                "token",
            ),
            (answer(401, Value::Null), "token"),
            (
                error_403("rateLimitExceeded", "Rate Limit Exceeded"),
                "later",
            ),
            (
                error_403("userRateLimitExceeded", "User Rate Limit Exceeded"),
                "later",
            ),
            (
                error_403("dailyLimitExceeded", "Daily Limit Exceeded"),
                "in hours",
            ),
            (
                error_403("insufficientPermissions", "Insufficient Permission"),
                "never",
            ),
            (
                error_403(
                    "domainPolicy",
                    "The domain administrators have disabled Gmail apps.",
                ),
                "never",
            ),
            (error_403("forbidden", "Delegation denied"), "never"),
            (answer(403, Value::Null), "later"),
            (
                answer(
                    403,
                    json!({ "error": {
                    "code": 403,
                    "message": "Quota exceeded for quota metric 'Queries'",
                    "status": "PERMISSION_DENIED",
                    "details": [{
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": "RATE_LIMIT_EXCEEDED",
                    }],
                } }),
                ),
                "later",
            ),
            (error(404, "notFound", "Not Found", "NOT_FOUND"), "never"),
            (answer(408, Value::Null), "later"),
            (answer(413, Value::Null), "never"),
            (
                error(
                    429,
                    "rateLimitExceeded",
                    "Too many concurrent requests for user",
                    "RESOURCE_EXHAUSTED",
                ),
                "later",
            ),
            (
                error(
                    429,
                    "rateLimitExceeded",
                    "User-rate limit exceeded.  Retry after 2026-03-01T12:01:30.000Z (Mail sending)",
                    "RESOURCE_EXHAUSTED",
                ),
                "in 90 s",
            ),
            (
                error(
                    429,
                    "rateLimitExceeded",
                    "Retry after 2026-03-01T11:00:00Z",
                    "",
                ),
                "later",
            ),
            (answer(429, Value::Null), "later"),
            (answer(302, Value::Null), "later"),
            (
                error(500, "backendError", "Backend Error", "INTERNAL"),
                "unknown",
            ),
            (
                error(503, "rateLimitExceeded", "x", "UNAVAILABLE"),
                "unknown",
            ),
            (answer(502, Value::Null), "unknown"),
            (answer(504, Value::Null), "unknown"),
            (answer(400, json!({ "error": "invalid_grant" })), "never"),
            (answer(400, json!([1])), "never"),
        ] {
            let verdict = sent(&answer, now());
            assert_eq!(name(&verdict), expected, "{answer:?}");
        }
    }

    #[test]
    fn the_header_names_the_time_before_the_text_does() {
        let mut limited = error(
            429,
            "rateLimitExceeded",
            "Retry after 2026-03-01T13:00:00Z",
            "",
        );
        limited.retry_after = Some(Duration::from_secs(90));
        assert_eq!(name(&sent(&limited, now())), "in 90 s");
        let mut daily = error(403, "dailyLimitExceeded", "Daily Limit Exceeded", "");
        daily.retry_after = Some(Duration::from_secs(90));
        assert_eq!(name(&sent(&daily, now())), "in hours");
    }

    #[test]
    fn what_is_told_is_one_line_in_gmails_words() {
        for (answer, expected) in [
            (
                error(403, "domainPolicy", "No\r\n250 ok", "PERMISSION_DENIED"),
                "HTTP 403 domainPolicy: No  250 ok",
            ),
            (
                answer(400, json!({ "error": { "message": "Bad" } })),
                "HTTP 400: Bad",
            ),
            (answer(413, Value::Null), "HTTP 413"),
        ] {
            assert_eq!(text(&answer), expected);
        }
        let long = error(400, "invalidArgument", &"x".repeat(100_000), "");
        assert!(text(&long).len() <= 300);
    }

    #[test]
    fn why_a_mailbox_is_not_read() {
        for (answer, expected) in [
            (error(401, "authError", "Invalid Credentials", ""), "token"),
            (error(403, "insufficientPermissions", "No", ""), "forbidden"),
            (
                error(400, "failedPrecondition", "Mail service not enabled", ""),
                "forbidden",
            ),
            (error(403, "rateLimitExceeded", "x", ""), "unavailable"),
            (error(429, "rateLimitExceeded", "x", ""), "unavailable"),
            (error(400, "invalidArgument", "x", ""), "unavailable"),
            (answer(503, Value::Null), "unavailable"),
        ] {
            let read = match not_read(&answer, now()) {
                ReadError::TokenRefused(_) => "token",
                ReadError::Forbidden(_) => "forbidden",
                ReadError::Unexplained(_) => "unexplained",
                ReadError::Unavailable { .. } => "unavailable",
            };
            assert_eq!(read, expected, "{answer:?}");
        }
        let mut busy = answer(503, Value::Null);
        busy.retry_after = Some(Duration::from_secs(7));
        let ReadError::Unavailable { retry_after, .. } = not_read(&busy, now()) else {
            panic!("503 is no refusal");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }
}
