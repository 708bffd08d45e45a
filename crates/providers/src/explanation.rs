//! Explains a failure as it is stored: what happened, and what to do, in plain English. It is computed when it is read,
//! so rows of earlier releases have one too. The texts of the three transports differ, so the text says which rules
//! apply:
//!
//! | text | rules |
//! |---|---|
//! | `Microsoft Graph answered 403 ErrorSendAsDenied: …` | [`graph`] |
//! | `HTTP 403 rateLimitExceeded: …` | [`gmail`] |
//! | `the provider answers 401 invalid_client: …` | [`oauth`] |
//! | `550 5.1.1 …`, and the status and diagnostic of a bounce | [`smtp`] |
//! | one of this crate's | [`own`] |
//!
//! Those of the gateway's other parts are explained where they are written.

mod catalogue;
mod general;
mod gmail;
mod graph;
mod http_status;
mod oauth;
mod own;
mod rule;
mod smtp;

pub use catalogue::{DISCONNECTED, OVER_DAILY_LIMIT, OVER_RATE, SENDER_REFUSED};
pub use general::{GENERAL, is_general};
pub use rule::{Concern, Explanation, Next, Remedy, Rule};

/// Explains a stored failure.
#[must_use]
pub fn of_failure(text: &str, next: Next) -> Explanation {
    rule(text, next).explain(next)
}

/// Explains a final bounce by the status and the diagnostic of its notification (RFC 3464 §2.3.4, §2.3.6).
#[must_use]
pub fn of_bounce(status: Option<&str>, diagnostic: Option<&str>) -> Explanation {
    smtp::bounced(status, diagnostic.unwrap_or_default()).explain(Next::Ended)
}

fn rule(text: &str, next: Next) -> &'static Rule {
    // The words of a provider can be anything, so ours come last.
    graph::rule(text, next)
        .or_else(|| gmail::rule(text))
        .or_else(|| oauth::rule(text))
        .or_else(|| smtp::rule(text))
        .or_else(|| own::rule(text))
        .unwrap_or(&GENERAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as they are stored, and a part of the explanation.
    #[test]
    fn failures() {
        use Next::{Ended, Waiting};
        for (text, next, part) in [
            (
                "550 5.1.1 The email account … does not exist.",
                Ended,
                "address does not exist",
            ),
            ("550 No such user here", Ended, "address does not exist"),
            (
                "452 4.2.2 The recipient's inbox is out of storage space.",
                Waiting,
                "is full",
            ),
            ("554 5.2.2 mailbox full", Ended, "is full"),
            ("421 4.4.5 Server busy, try again later.", Waiting, "busy"),
            (
                "550 5.4.5 Daily user sending limit exceeded.",
                Waiting,
                "daily sending limit",
            ),
            ("550 5.1.8 bad sender domain", Ended, "sender's address"),
            ("550 Requested action not taken", Ended, "not available"),
            (
                "552 5.7.0 blocked because its content presents a potential security issue",
                Ended,
                "for security",
            ),
            (
                "421 4.7.0 Try again later, closing connection.",
                Waiting,
                "busy",
            ),
            (
                "HTTP 403 rateLimitExceeded: Rate Limit Exceeded",
                Waiting,
                "at a time",
            ),
            ("HTTP 503", Waiting, "problem of its own"),
            (
                "Microsoft Graph answered 403 ErrorSendAsDenied: no",
                Ended,
                "sender address",
            ),
            (
                "Microsoft Graph answered 403 errorsendasdenied",
                Ended,
                "sender address",
            ),
            ("Microsoft Graph answered 401", Waiting, "upload"),
            ("Microsoft Graph answered 401", Ended, "sign-in"),
            (
                "the provider answers 401 invalid_client: no",
                Waiting,
                "own credentials",
            ),
            (
                "smtp.example.com can't be reached: refused",
                Waiting,
                "could not be reached",
            ),
            ("something new", Ended, "gave no reason"),
            ("", Waiting, "gave no reason"),
        ] {
            let explanation = of_failure(text, next);
            assert!(
                explanation.meaning.contains(part),
                "{text}: {explanation:?}"
            );
        }
    }

    #[test]
    fn bounces() {
        for (status, diagnostic, part) in [
            (
                Some("5.1.1"),
                Some("550 5.1.1 No such user here"),
                "address does not exist",
            ),
            (Some("5.1.1"), None, "address does not exist"),
            // The diagnostic has more than the status.
            (Some("5.0.0"), Some("smtp; 552 5.2.2 over quota"), "is full"),
            (None, Some("550 user unknown"), "address does not exist"),
            (Some("5.7.26"), Some("550-5.7.26 unauthenticated"), "SPF"),
            (
                Some("5.4.1"),
                Some("550 5.4.1 Recipient address rejected: Access denied."),
                "address does not exist",
            ),
            (Some("5.7.999"), None, "rule"),
            (None, None, "gave no reason"),
        ] {
            let explanation = of_bounce(status, diagnostic);
            assert!(
                explanation.meaning.contains(part),
                "{status:?} {diagnostic:?}: {explanation:?}"
            );
            assert!(!explanation.action.contains("by itself"), "{explanation:?}");
        }
    }
}
