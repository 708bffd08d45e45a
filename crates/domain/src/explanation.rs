//! Floor 0: explains failures to people who don't know the protocols: what happened, and what to do. The rules for the
//! providers' answers are in the crate of the providers, those for the gateway's own texts here.

mod own;
#[cfg(test)]
mod tests;

use mailgate_providers::explanation::{self as providers, Next};
use mailgate_types::log_status::LogStatus;

pub use mailgate_providers::explanation::{Concern, Explanation};

/// Explains the stored failure of a message with this status.
#[must_use]
pub fn of_failure(text: &str, status: LogStatus) -> Explanation {
    let next = match status {
        LogStatus::FailedTemp => Next::Waiting,
        LogStatus::Sent | LogStatus::FailedPerm => Next::Ended,
    };
    // A message that has waited for too long was given up for the reason that it has waited for.
    let text = own::without_age(text);
    own::rule(text).map_or_else(
        || providers::of_failure(text, next),
        |rule| rule.explain(next),
    )
}

/// Explains a final bounce by its status and its diagnostic.
#[must_use]
pub(crate) fn of_bounce(status: Option<&str>, diagnostic: Option<&str>) -> Explanation {
    providers::of_bounce(status, diagnostic)
}
