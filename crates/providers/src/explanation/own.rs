//! The texts of this crate: those that a message gets without an answer of its provider, or with an answer that isn't
//! one. The rows have the parts that stay the same.

use super::catalogue::{
    BROKEN, INCOMPATIBLE, LATE, NOT_SECURE, OVER_RATE, SCOPE_MISSING, UNREACHABLE,
};
use super::rule::{Concern, Remedy, Rule};

const TOO_LARGE: Rule = Rule {
    meaning: "The message is larger than the mailbox's provider accepts.",
    remedy: Remedy::Do("Make the message smaller, for example by replacing attachments with links"),
    concerns: Concern::Message,
};

const TOO_LARGE_FOR_PARTS: Rule = Rule {
    meaning: "The message is too large to be handed to Microsoft whole, and has something that can't be handed over in \
              parts.",
    remedy: Remedy::Do(
        "Make the message smaller than 3 MB, or leave out what the message's last error names",
    ),
    concerns: Concern::Message,
};

const UNREADABLE: Rule = Rule {
    meaning: "The message has an error in its structure, so the gateway can't hand it to Microsoft.",
    remedy: Remedy::Do("Have the app's developer correct how the app builds the message"),
    concerns: Concern::Message,
};

const LONG_HEADERS: Rule = Rule {
    meaning: "The message's headers are longer than the gateway accepts.",
    remedy: Remedy::Do("Have the app's developer shorten the message's headers"),
    concerns: Concern::Message,
};

const OTHERS_NAMED: Rule = Rule {
    meaning: "The message's To or Cc names someone who is not among its recipients, but whom the provider would send it \
              to.",
    remedy: Remedy::Do(
        "Have the app's developer submit the message once for all of its recipients, or name only recipients in To \
         and Cc",
    ),
    concerns: Concern::Message,
};

const NOT_PREPARED: Rule = Rule {
    meaning: "The gateway could not prepare the message for the provider.",
    remedy: Remedy::Do("If it happens again, tell the gateway's operator"),
    concerns: Concern::Operator,
};

const WITHHELD: Rule = Rule {
    meaning: "The gateway held the message back, because it could not be sure that it isn't being sent already.",
    remedy: Remedy::Retry,
    concerns: Concern::Operator,
};

const NOT_READY: Rule = Rule {
    meaning: "The provider was not ready to take the message in time.",
    remedy: Remedy::Retry,
    concerns: Concern::Provider,
};

const BAD_TOKEN: Rule = Rule {
    meaning: "The provider gave the gateway an access to the mailbox that can't be used for sending by SMTP.",
    remedy: Remedy::Do(
        "Tell the gateway's operator, who can have the provider's API used instead of SMTP",
    ),
    concerns: Concern::Operator,
};

const ODD_REPLY: Rule = Rule {
    meaning: "The provider gave an answer that the gateway can't read.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

const TEXTS: &[(&str, &Rule)] = &[
    ("5.3.4 The message has ", &TOO_LARGE),
    ("5.3.4 The message is larger than ", &TOO_LARGE),
    ("5.3.4 The message's text is larger than ", &TOO_LARGE),
    (
        "5.3.4 The message is too large to be sent without a draft",
        &SCOPE_MISSING_FOR_DRAFTS,
    ),
    (
        "The message is too large to go to Microsoft Graph whole",
        &TOO_LARGE_FOR_PARTS,
    ),
    ("5.6.0 The message can't be ", &UNREADABLE),
    ("5.6.0 The message's headers take more than", &LONG_HEADERS),
    ("5.6.0 To or Cc names ", &OTHERS_NAMED),
    (
        "the gateway could not take the message to pieces",
        &NOT_PREPARED,
    ),
    (
        "the gateway could not rule out that another process has the message",
        &WITHHELD,
    ),
    (
        "the mailbox had no place for the message within",
        &OVER_RATE,
    ),
    ("the mailbox was busy with other messages for", &OVER_RATE),
    (
        "the provider was not ready for the message within",
        &NOT_READY,
    ),
    ("Microsoft Graph can't be reached", &UNREACHABLE),
    ("Microsoft Graph did not answer within", &LATE),
    ("The connection to Microsoft Graph broke", &BROKEN),
    ("Microsoft Graph's answer ", &ODD_REPLY),
    ("no trusted TLS connection to ", &NOT_SECURE),
    (
        " offers no STARTTLS, and mail is never sent in clear",
        &NOT_SECURE,
    ),
    (" sent something between STARTTLS and TLS", &NOT_SECURE),
    (" offers neither AUTH PLAIN nor AUTH LOGIN", &INCOMPATIBLE),
    ("the provider took longer than ", &LATE),
    ("the connection to the provider broke", &BROKEN),
    ("the server's answer isn't an SMTP reply", &ODD_REPLY),
    ("the provider sent an unsolicited reply", &ODD_REPLY),
    ("the provider answered out of turn", &ODD_REPLY),
    ("the provider's access token is too long", &BAD_TOKEN),
    (
        "the user name or the provider's access token contains a control",
        &BAD_TOKEN,
    ),
    (" can't be reached: ", &UNREACHABLE),
    // The HTTP client's own.
    ("error sending request", &BROKEN),
    ("operation timed out", &LATE),
];

const SCOPE_MISSING_FOR_DRAFTS: Rule = Rule {
    meaning: "The message is too large for the permissions with which the mailbox's user has connected it.",
    ..SCOPE_MISSING
};

/// The rule for one of our texts.
pub(super) fn rule(text: &str) -> Option<&'static Rule> {
    let known = TEXTS.iter().find(|(part, _)| text.contains(part));
    known.map(|(_, rule)| *rule)
}
