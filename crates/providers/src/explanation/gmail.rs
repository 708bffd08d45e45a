//! Gmail's API: its error reasons
//! (<https://developers.google.com/workspace/gmail/api/guides/handle-errors>), and those of Google's API gateway before
//! it (<https://docs.cloud.google.com/service-usage/docs/troubleshooting>).

use super::catalogue::{
    ADMINISTRATOR_FORBIDS, API_OFF, BAD_ADDRESS, MALFORMED, NO_MAILBOX, OVER_RATE, PASSING,
    PROJECT_LIMIT, SCOPE_MISSING, SENDER_REFUSED, THROTTLED, TOKEN_REFUSED, TOO_LARGE, UNCLEAR,
};
use super::http_status::{self, read};
use super::rule::{Concern, Remedy, Rule};

const NO_ID: Rule = Rule {
    meaning: "Google accepted the request, but did not confirm that it has sent the message.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

/// A reason, words of the message in lower case (empty: any), and the rule: the first that fits.
const REASONS: &[(&str, &str, &Rule)] = &[
    ("invalidArgument", "invalid from header", &SENDER_REFUSED),
    ("invalidArgument", "invalid to header", &BAD_ADDRESS),
    ("invalidArgument", "invalid cc header", &BAD_ADDRESS),
    ("invalidArgument", "invalid bcc header", &BAD_ADDRESS),
    ("invalidArgument", "recipient address", &BAD_ADDRESS),
    ("invalidArgument", "", &MALFORMED),
    ("badRequest", "", &MALFORMED),
    (
        "failedPrecondition",
        "mail service not enabled",
        &NO_MAILBOX,
    ),
    // Reported for one call in a hundred (google-api-go-client#645).
    ("failedPrecondition", "", &PASSING),
    (
        "FAILED_PRECONDITION",
        "mail service not enabled",
        &NO_MAILBOX,
    ),
    ("FAILED_PRECONDITION", "", &PASSING),
    ("authError", "", &TOKEN_REFUSED),
    ("UNAUTHENTICATED", "", &TOKEN_REFUSED),
    // Its document: the limit of the project, not of the mailbox.
    ("dailyLimitExceeded", "", &PROJECT_LIMIT),
    ("dailyLimitExceededUnreg", "", &PROJECT_LIMIT),
    ("userRateLimitExceeded", "", &OVER_RATE),
    ("rateLimitExceeded", "for user", &OVER_RATE),
    ("rateLimitExceeded", "user-rate", &OVER_RATE),
    ("rateLimitExceeded", "", &THROTTLED),
    ("quotaExceeded", "", &THROTTLED),
    ("RATE_LIMIT_EXCEEDED", "", &THROTTLED),
    ("RESOURCE_EXHAUSTED", "", &THROTTLED),
    ("domainPolicy", "", &ADMINISTRATOR_FORBIDS),
    ("insufficientPermissions", "", &SCOPE_MISSING),
    ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", "", &SCOPE_MISSING),
    ("accessNotConfigured", "", &API_OFF),
    ("SERVICE_DISABLED", "", &API_OFF),
    ("API_DISABLED", "", &API_OFF),
    ("uploadTooLarge", "", &TOO_LARGE),
    ("notFound", "", &NO_MAILBOX),
    ("backendError", "", &UNCLEAR),
    ("internalError", "", &UNCLEAR),
];

/// The rule for a text like `HTTP 403 rateLimitExceeded: …`.
pub(super) fn rule(text: &str) -> Option<&'static Rule> {
    let answer = read(text.strip_prefix("HTTP ")?)?;
    if (200..300).contains(&answer.status) {
        return Some(&NO_ID);
    }
    let known = REASONS
        .iter()
        .find(|(reason, words, _)| *reason == answer.code && answer.says(words));
    Some(known.map_or_else(
        || http_status::rule(answer.status, !answer.code.is_empty()),
        |(_, _, rule)| *rule,
    ))
}
