//! What an HTTP status says by itself (RFC 9110 §15), for the APIs of both providers.

use super::catalogue::{
    ACCESS_DENIED, INCOMPATIBLE, LATE, MALFORMED, NO_MAILBOX, PASSING, THROTTLED, TOKEN_REFUSED,
    TOO_LARGE, UNCLEAR,
};
use super::general::{GENERAL, ODD_ANSWER};
use super::rule::{Concern, Remedy, Rule};

/// Without a reason, it comes from something between the gateway and the provider, or from an edge of the provider's.
const FORBIDDEN: Rule = Rule {
    meaning: "The provider, or a firewall in front of it, did not permit the gateway's request, and gave no reason.",
    remedy: Remedy::Do("If it happens again, tell the gateway's operator"),
    concerns: Concern::Provider,
};

/// The rule for a status; `has_code`: there was an error code with it, which no table knows.
pub(super) fn rule(status: u16, has_code: bool) -> &'static Rule {
    match status {
        400 => &MALFORMED,
        401 => &TOKEN_REFUSED,
        403 if has_code => &ACCESS_DENIED,
        403 => &FORBIDDEN,
        404 => &NO_MAILBOX,
        408 => &LATE,
        409 => &PASSING,
        411 => &INCOMPATIBLE,
        413 => &TOO_LARGE,
        429 => &THROTTLED,
        _ if status >= 500 => &UNCLEAR,
        _ if status >= 400 => &GENERAL,
        _ => &ODD_ANSWER,
    }
}

/// The status, error code and message of `403 reason: message`, the rest of a text.
pub(super) fn read(text: &str) -> Option<Answer<'_>> {
    let (status, rest) = text.split_at_checked(3)?;
    let status = status
        .parse()
        .ok()
        .filter(|status| (100..600).contains(status))?;
    let rest = rest.trim_start();
    let (code, message) = rest.split_once(':').unwrap_or((rest, ""));
    // Without a code, the colon follows immediately, or is part of the message.
    let (code, message) = if code.contains(char::is_whitespace) {
        ("", rest)
    } else {
        (code, message.trim())
    };
    Some(Answer {
        status,
        code,
        message,
    })
}

/// An answer with an error.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    /// Empty if there was none.
    pub(super) code: &'a str,
    pub(super) message: &'a str,
}

impl Answer<'_> {
    /// Whether its message has these words, in lower case.
    pub(super) fn says(&self, words: &str) -> bool {
        self.message.to_ascii_lowercase().contains(words)
    }
}
