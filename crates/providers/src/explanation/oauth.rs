//! The token endpoint at a refresh: its error codes (RFC 6749 §5.2, and of Microsoft
//! <https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow>).

use super::catalogue::{CLIENT_REFUSED, DISCONNECTED, SIGN_IN_LATER};
use super::http_status::read;
use super::rule::{Concern, Remedy, Rule};

const UNREACHABLE: Rule = Rule {
    meaning: "The provider's sign-in service could not be reached, so the gateway could not renew its access.",
    remedy: Remedy::Retry,
    concerns: Concern::Provider,
};

const NOT_UNDERSTOOD: Rule = Rule {
    meaning: "The provider's sign-in service gave an answer that the gateway can't use.",
    remedy: Remedy::Do("If it happens again, tell the gateway's operator"),
    concerns: Concern::Provider,
};

/// The codes for a problem that passes (RFC 6749 §4.1.2.1, RFC 8628 §3.5).
const PASSING: [&str; 3] = ["temporarily_unavailable", "server_error", "slow_down"];

/// The beginnings of other texts about tokens.
const OTHERS: &[(&str, &Rule)] = &[
    ("the provider says ", &DISCONNECTED),
    (
        "the provider's OAuth endpoint can't be reached",
        &UNREACHABLE,
    ),
    (
        "the provider's OAuth response is malformed",
        &NOT_UNDERSTOOD,
    ),
    (
        "the provider hasn't verified the account's address",
        &NOT_UNDERSTOOD,
    ),
];

/// The rule for a text like `the provider answers 401 invalid_client: …`.
pub(super) fn rule(text: &str) -> Option<&'static Rule> {
    if let Some(answer) = text.strip_prefix("the provider answers ").and_then(read) {
        let passes = answer.status >= 500 || answer.status == 429 || PASSING.contains(&answer.code);
        return Some(if passes {
            &SIGN_IN_LATER
        } else {
            &CLIENT_REFUSED
        });
    }
    let other = OTHERS
        .iter()
        .find(|(beginning, _)| text.starts_with(beginning));
    other.map(|(_, rule)| *rule)
}
