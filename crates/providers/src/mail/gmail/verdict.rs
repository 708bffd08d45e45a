//! What a Gmail API response means for a message, or for the reading of a mailbox.

mod error;
pub(super) mod meaning;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

use self::error::{message_of, text};
use self::meaning::{Meaning, meaning};
use crate::answer::ProviderResponse;
use crate::mail::reader::ReadError;
use crate::mail::verdict::{Failure, Verdict};

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
