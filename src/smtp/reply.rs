//! SMTP replies to messages: outcomes and refusals.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use chrono::{DateTime, SecondsFormat, Utc};

use super::suppressed;
use mailgate_domain::sending::accept::draft::PrepareError;
use mailgate_domain::sending::accept::raw_message::RawMessageError;
use mailgate_domain::sending::{Blocked, Outcome, Receipt, Refusal, SendError};
use mailgate_providers::mail::verdict::Failure;
use mailgate_smtp::protocol::reply::Reply;
use mailgate_storage::database::outage::trouble;
use mailgate_types::send_at::SendAtError;

/// The refusal of a message scheduled in the past.
pub(super) const SEND_AT_PAST: RawMessageError = RawMessageError::SendAt(SendAtError::Past);

pub(super) fn refused(refusal: Refusal) -> Reply {
    match refusal {
        Refusal::Key | Refusal::Changed(_) => authentication_failed(),
        Refusal::Blocked(blocked) => self::blocked(&blocked),
        Refusal::SendAtPast => Reply::new(550, "5.6.0", &SEND_AT_PAST.to_string()),
        Refusal::NoMailbox | Refusal::Unpreparable(PrepareError::Address) => no_mailbox_sends_so(),
        Refusal::MailboxNotAllowed => not_authorized(),
        Refusal::OtherSender(header) => {
            let error = RawMessageError::OtherSender(header);
            Reply::new(550, "5.7.1", &error.to_string())
        }
        Refusal::Unpreparable(PrepareError::TooLarge(_)) => {
            Reply::new(552, "5.3.4", "The message is too large")
        }
        Refusal::Suppressed(recipients) => suppressed::reply(&recipients),
        Refusal::Unpreparable(PrepareError::Changed | PrepareError::CutOff) => {
            not_sent(SendError::NotTaken)
        }
        Refusal::Database(error) => unavailable(&error),
        Refusal::Send(error) => not_sent(error),
    }
}

fn not_sent(error: SendError) -> Reply {
    let (code, enhanced) = match error {
        SendError::QuotaFull => (451, "4.3.1"),
        SendError::NotTaken | SendError::InFlight => (451, "4.3.0"),
        SendError::Unknown => (554, "5.3.0"),
        SendError::KeyOfAnother => (550, "5.6.0"),
    };
    Reply::new(code, enhanced, &error.to_string())
}

pub(super) fn reply(outcome: &Outcome) -> Reply {
    match outcome {
        Outcome::Sent { receipt } => Reply::new(
            250,
            "2.0.0",
            &format!("{} sent via {}", receipt.id, receipt.plugin),
        ),
        Outcome::Scheduled { receipt, send_at } => stored(receipt, "scheduled for", *send_at),
        Outcome::Queued {
            receipt,
            next_retry_at,
            ..
        } => stored(receipt, "queued, next attempt", *next_retry_at),
        Outcome::Rejected { failure, .. } => rejected(failure),
    }
}

fn stored(receipt: &Receipt, what: &str, at: DateTime<Utc>) -> Reply {
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    Reply::new(250, "2.0.0", &format!("{} {what} {at}", receipt.id))
}

/// The provider's own code and text. Its reply to the gateway's login could be mistaken for one to the client's, so it
/// becomes a plain failure that quotes it.
fn rejected(failure: &Failure) -> Reply {
    match failure.code {
        Some(code @ (500..=529 | 540..=599)) => with_enhanced(code, &failure.text),
        Some(_) => Reply::new(554, "5.7.0", &failure.to_string()),
        None => with_enhanced(554, &failure.text),
    }
}

/// The text may begin with its own enhanced status code (RFC 3463).
fn with_enhanced(code: u16, text: &str) -> Reply {
    let own = text.split_once(' ').filter(|(word, _)| {
        word.starts_with("5.") && word.split('.').all(|part| part.parse::<u16>().is_ok())
    });
    match own {
        Some((enhanced, rest)) => Reply::new(code, enhanced, rest),
        None => Reply::new(code, "5.0.0", text),
    }
}

pub(super) fn authentication_failed() -> Reply {
    Reply::new(535, "5.7.8", "Authentication failed")
}

fn not_authorized() -> Reply {
    Reply::new(550, "5.7.1", "From address not authorized")
}

/// The address is valid, but no mailbox may send as it.
fn no_mailbox_sends_so() -> Reply {
    Reply::new(
        550,
        "5.7.1",
        "From address not authorized: no connected mailbox of the app may send as it. A new address at the provider \
         is recognised within a day, or once the mailbox is connected again",
    )
}

fn blocked(blocked: &Blocked) -> Reply {
    match blocked {
        Blocked::ByOperator(_) | Blocked::Suspended(_) => {
            Reply::new(451, "4.7.1", &blocked.to_string())
        }
        Blocked::Ended => Reply::new(550, "5.7.1", &blocked.to_string()),
    }
}

pub(super) fn unavailable(error: &sqlx::Error) -> Reply {
    trouble!(
        error,
        error,
        "a message can't be accepted: the database can't be reached"
    );
    Reply::new(
        451,
        "4.3.0",
        "The gateway can't take the message at the moment",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_words_reach_the_client() {
        for (code, text, expected) in [
            (
                Some(550),
                "5.1.1 No such user",
                "550 5.1.1 No such user\r\n",
            ),
            (Some(554), "no thanks", "554 5.0.0 no thanks\r\n"),
            (Some(552), "5.3.4 too large", "552 5.3.4 too large\r\n"),
            (
                Some(535),
                "5.7.8 Bad credentials",
                "554 5.7.0 535 5.7.8 Bad credentials\r\n",
            ),
            (
                None,
                "5.7.8 The mailbox is gone",
                "554 5.7.8 The mailbox is gone\r\n",
            ),
            (
                None,
                "The connection broke",
                "554 5.0.0 The connection broke\r\n",
            ),
        ] {
            let mut output = Vec::new();
            rejected(&Failure {
                code,
                text: text.to_owned(),
            })
            .write_to(&mut output);
            assert_eq!(String::from_utf8_lossy(&output), expected);
        }
    }
}
