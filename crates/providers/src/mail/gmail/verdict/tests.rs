//! Responses of the Gmail API, and what they mean.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::error::{RETRY_AFTER, named_time};
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
