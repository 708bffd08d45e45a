//! The meaning of a Gmail API error, by its reason rather than by its status alone: 403 stands both for a rate limit,
//! which passes, and for a missing permission, which doesn't.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::error::{message_of, named_time, reasons_of};
use crate::answer::ProviderResponse;

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

/// The meaning of a response that isn't a success.
pub(super) enum Meaning {
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

pub(super) fn meaning(answer: &ProviderResponse, now: DateTime<Utc>) -> Meaning {
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

/// Whether the operator must act.
pub(in crate::mail::gmail) fn is_switched_off(answer: &ProviderResponse) -> bool {
    answer.status == 403 && reasons_of(&answer.body).any(|reason| SWITCHED_OFF.contains(&reason))
}
