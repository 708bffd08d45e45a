//! Why a mailbox can't be read: the meaning of a missing or unexpected response.

use crate::mail::graph::api::{CallError, GraphResponse};
use crate::mail::graph::verdict::{THROTTLED, Words};
use crate::mail::reader::ReadError;

/// The error codes for a message that Exchange can't put into MIME, such as an opaque S/MIME one.
const NOT_CONVERTED: [&str; 2] = [
    "ErrorMimeContentConversionFailed",
    "ErrorContentConversionFailed",
];

/// The error codes for an account whose mailbox can't be read by Graph, or that has none.
const NO_MAILBOX: [&str; 6] = [
    "MailboxNotEnabledForRESTAPI",
    "MailboxNotSupportedForRESTAPI",
    "MailboxNotHostedInExchangeOnline",
    "ErrorInvalidUser",
    "ErrorNonExistentMailbox",
    "ResourceNotFound",
];

pub(super) fn unreachable(error: &CallError) -> ReadError {
    ReadError::unavailable(error.to_string())
}

pub(super) fn nonsense() -> ReadError {
    ReadError::unavailable("Microsoft Graph's answer can't be understood")
}

pub(super) fn refused(answer: &GraphResponse) -> ReadError {
    let words = Words::read(&answer.body);
    let text = words.tell(answer.status);
    match answer.status {
        401 => ReadError::TokenRefused(text),
        403 if words.says(&["ErrorAccessDenied", "Authorization_RequestDenied"]) => {
            ReadError::Forbidden(text)
        }
        400 | 403 | 404 if words.says(&NO_MAILBOX) => ReadError::Forbidden(text),
        _ => ReadError::Unavailable {
            text,
            retry_after: answer.retry_after,
        },
    }
}

/// Whether a request for one message failed, and always will, because of that message: it must not block later ones.
pub(super) fn is_final(answer: &GraphResponse) -> bool {
    let words = Words::read(&answer.body);
    match answer.status {
        401 | 429 => false,
        400 | 404 | 410 | 413 | 422 => !words.says(&THROTTLED),
        // The page that lists it could be read. If the whole mailbox is closed now, the next page says so.
        403 => words.says(&["ErrorAccessDenied"]),
        // Exchange can't convert it, and never will, also where it says 500.
        _ => words.says(&NOT_CONVERTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_will_never_let_be_read() {
        for (status, code, expected) in [
            (401, "InvalidAuthenticationToken", "token"),
            (403, "ErrorAccessDenied", "forbidden"),
            (403, "Authorization_RequestDenied", "forbidden"),
            (404, "MailboxNotEnabledForRESTAPI", "forbidden"),
            (404, "MailboxNotSupportedForRESTAPI", "forbidden"),
            (404, "ErrorInvalidUser", "forbidden"),
            (404, "ErrorNonExistentMailbox", "forbidden"),
            (403, "MailboxNotHostedInExchangeOnline", "forbidden"),
            (400, "mailboxnotenabledforrestapi", "forbidden"),
            (404, "ErrorItemNotFound", "unavailable"),
            (403, "", "unavailable"),
            (429, "ApplicationThrottled", "unavailable"),
            (503, "MailboxNotEnabledForRESTAPI", "unavailable"),
        ] {
            let answer = GraphResponse {
                status,
                retry_after: None,
                body: format!("{{\"error\":{{\"code\":\"{code}\"}}}}").into_bytes(),
            };
            let read = match refused(&answer) {
                ReadError::TokenRefused(_) => "token",
                ReadError::Unexplained(_) => "unexplained",
                ReadError::Forbidden(_) => "forbidden",
                ReadError::Unavailable { .. } => "unavailable",
            };
            assert_eq!(read, expected, "{status} {code}");
        }
    }

    #[test]
    fn what_is_wrong_with_one_message_and_what_passes() {
        for (status, code, expected) in [
            (400, "ErrorInvalidIdMalformed", true),
            (400, "", true),
            (403, "ErrorAccessDenied", true),
            (404, "ErrorItemNotFound", true),
            (410, "", true),
            (422, "ErrorContentConversionFailed", true),
            (500, "ErrorMimeContentConversionFailed", true),
            (500, "ErrorContentConversionFailed", true),
            (400, "ErrorServerBusy", false),
            (401, "InvalidAuthenticationToken", false),
            (403, "", false),
            (403, "ErrorExceededMessageLimit", false),
            (408, "", false),
            (429, "TooManyRequests", false),
            (500, "ErrorInternalServerError", false),
            (503, "", false),
            (504, "UnknownError", false),
        ] {
            let body = format!("{{\"error\":{{\"code\":\"{code}\"}}}}");
            let answer = GraphResponse {
                status,
                retry_after: None,
                body: body.into_bytes(),
            };
            assert_eq!(is_final(&answer), expected, "{status} {code}");
        }
    }
}
