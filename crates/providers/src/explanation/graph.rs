//! Microsoft Graph: its error codes (<https://learn.microsoft.com/graph/errors>,
//! <https://learn.microsoft.com/graph/throttling>) and those of Exchange behind it
//! (<https://learn.microsoft.com/exchange/client-developer/web-service-reference/responsecode>).

use super::catalogue::{
    ACCESS_DENIED, BAD_ADDRESS, BUSY, MALFORMED, NO_MAILBOX, OVER_DAILY_LIMIT, OVER_RATE, PASSING,
    SENDER_FULL, SENDER_REFUSED, THROTTLED, TOKEN_REFUSED, TOO_LARGE, UNCLEAR,
};
use super::http_status::{self, read};
use super::rule::{Concern, Next, Remedy, Rule};

const NOT_CONFIRMED: Rule = Rule {
    meaning: "Microsoft gave an answer that it also gives for messages that it doesn't send.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

const DRAFT_GONE: Rule = Rule {
    meaning: "Microsoft no longer found the draft from which the message is sent, perhaps because it was sent.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

const UPLOAD_ENDED: Rule = Rule {
    meaning: "Microsoft ended the upload of an attachment before it was complete.",
    remedy: Remedy::Retry,
    concerns: Concern::Provider,
};

/// The message may be among the sent ones: the answers of busy servers have also come for messages that were sent
/// (<https://learn.microsoft.com/answers/questions/1465421>).
const SERVER_BUSY: Rule = Rule {
    meaning: "Microsoft's servers are too busy for the message.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

const STORAGE: Rule = Rule {
    meaning: "Microsoft's server had no more room for the message.",
    remedy: Remedy::Look,
    concerns: Concern::Mailbox,
};

const CODES: &[(&str, &Rule)] = &[
    ("ErrorMimeContentInvalid", &MALFORMED),
    ("ErrorMimeContentInvalidBase64String", &MALFORMED),
    ("ErrorInvalidRecipients", &BAD_ADDRESS),
    ("ErrorMessageSizeExceeded", &TOO_LARGE),
    ("RequestEntityTooLarge", &TOO_LARGE),
    ("ErrorExceededMessageLimit", &OVER_DAILY_LIMIT),
    ("InvalidAuthenticationToken", &TOKEN_REFUSED),
    ("ErrorAccessDenied", &ACCESS_DENIED),
    ("ErrorSendAsDenied", &SENDER_REFUSED),
    ("ErrorQuotaExceeded", &SENDER_FULL),
    ("ErrorItemNotFound", &DRAFT_GONE),
    ("MailboxNotEnabledForRESTAPI", &NO_MAILBOX),
    ("MailboxNotSupportedForRESTAPI", &NO_MAILBOX),
    ("ErrorNonExistentMailbox", &NO_MAILBOX),
    ("ErrorMailboxMoveInProgress", &BUSY),
    ("ErrorMailboxStoreUnavailable", &UNCLEAR),
    ("ErrorIrresolvableConflict", &PASSING),
    ("TooManyRequests", &THROTTLED),
    ("ApplicationThrottled", &THROTTLED),
    ("MailboxConcurrency", &OVER_RATE),
    ("ErrorServerBusy", &SERVER_BUSY),
    ("ErrorInternalServerError", &UNCLEAR),
    ("UnknownError", &UNCLEAR),
];

/// The rule for a text like `Microsoft Graph answered 403 ErrorSendAsDenied: …`.
pub(super) fn rule(text: &str, next: Next) -> Option<&'static Rule> {
    let answer = read(text.strip_prefix("Microsoft Graph answered ")?)?;
    let known = CODES
        .iter()
        .find(|(code, _)| code.eq_ignore_ascii_case(answer.code));
    match known {
        // From a server, which may have sent it, rather than from the mailbox.
        Some((_, rule)) if answer.status >= 500 && **rule == SENDER_FULL => return Some(&STORAGE),
        Some((_, rule)) => return Some(rule),
        None => {}
    }
    Some(match answer.status {
        200 if answer.says("instead of 202") => &NOT_CONFIRMED,
        // The address of an upload has expired; for anything else these are final
        // (https://learn.microsoft.com/graph/outlook-large-attachments).
        400..=404 | 416 if next == Next::Waiting => &UPLOAD_ENDED,
        status => http_status::rule(status, !answer.code.is_empty()),
    })
}
