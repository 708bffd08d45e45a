//! Enhanced status codes (RFC 3463), without their class.

use super::super::catalogue::{
    ADDRESS_REFUSED, BAD_ADDRESS, BUSY, CIRCLE, FILE_BLOCKED, HOST_BLOCKED, INCOMPATIBLE,
    LOOKS_UNWANTED, MAILBOX_FULL, MAILBOX_OFF, MAILBOX_UNAVAILABLE, MALFORMED, NO_SUCH_ADDRESS,
    NO_SUCH_DOMAIN, NOT_AUTHENTICATED, OVER_DAILY_LIMIT, OVER_RATE, RECIPIENT_BUSY,
    RECIPIENT_SELECTS, REFUSED_BY_RULE, SENDER_BLOCKED, SENDER_REFUSED, SERVER_TROUBLE,
    SIGN_IN_LATER, TOKEN_REFUSED, TOO_LARGE, TOO_MANY_RECIPIENTS, UNREACHED,
};
use super::super::rule::{Concern, Remedy, Rule};

/// <https://learn.microsoft.com/exchange/clients-and-mobile-in-exchange-online/authenticated-client-smtp-submission>
const SUBMISSION_OFF: Rule = Rule {
    meaning: "The mailbox's organization has switched off sending by SMTP.",
    remedy: Remedy::Do(
        "Ask the organization's administrator to switch on authenticated SMTP for the mailbox",
    ),
    concerns: Concern::Mailbox,
};

const MOVED: Rule = Rule {
    meaning: "The recipient has moved to another address.",
    remedy: Remedy::Do("Ask the recipient for the new address and correct it in your app"),
    concerns: Concern::Recipient,
};

const BAD_SENDER: Rule = Rule {
    meaning: "The mail server does not accept the sender's address.",
    remedy: Remedy::Do("Send from the mailbox's own address"),
    concerns: Concern::Mailbox,
};

const SIZE_FOR_RECIPIENT: Rule = Rule {
    meaning: "The message is larger than the recipient's mailbox accepts.",
    remedy: Remedy::Do("Make the message smaller, for example by replacing attachments with links"),
    concerns: Concern::Recipient,
};

const TOO_LATE: Rule = Rule {
    meaning: "The recipient's mail server did not accept the message for as long as the provider tried.",
    remedy: Remedy::Do("Check the part of the address after the @ with the recipient"),
    concerns: Concern::Recipient,
};

const NOT_SUPPORTED: Rule = Rule {
    meaning: "The recipient's mail server can't handle the kind of content or address that the message has.",
    remedy: Remedy::Do(
        "Send the content in another form, or to an address without special characters",
    ),
    concerns: Concern::Message,
};

const NOT_ENCRYPTED: Rule = Rule {
    meaning: "A mail server on the way to the recipient demands an encryption that another one does not offer.",
    remedy: Remedy::Do("Ask the recipient to tell the administrator of their mail server"),
    concerns: Concern::Recipient,
};

/// Details, words in lower case, and the rule. The words decide between two meanings of one code.
const WITH_WORDS: &[(&str, &str, &Rule)] = &[
    // Microsoft: the mailbox was restricted for sending too much, or spam.
    ("1.8", "outbound", &SENDER_BLOCKED),
    ("2.1", "receiving mail", &RECIPIENT_BUSY),
    ("4.1", "recipient address rejected", &NO_SUCH_ADDRESS),
    ("4.2", "submission rate", &OVER_RATE),
    ("7.0", "authenticat", &SIGN_IN_LATER),
    ("7.0", "login attempts", &SIGN_IN_LATER),
    ("7.0", "unsolicited", &LOOKS_UNWANTED),
    ("7.0", "try again later", &BUSY),
    ("7.0", "security issue", &FILE_BLOCKED),
    ("4.4", "not found", &NO_SUCH_DOMAIN),
    ("7.1", "client host", &HOST_BLOCKED),
    ("7.1", "unsolicited", &LOOKS_UNWANTED),
    ("7.1", "spam", &LOOKS_UNWANTED),
    ("7.1", "blocked", &LOOKS_UNWANTED),
];

/// Details, and the rule.
const ALONE: &[(&[&str], &Rule)] = &[
    // Microsoft's 1.10, and RFC 7505's: the domain accepts no mail.
    (&["1.1", "1.10", "1.4"], &NO_SUCH_ADDRESS),
    (&["1.2"], &NO_SUCH_DOMAIN),
    (&["1.3"], &BAD_ADDRESS),
    (&["1.6"], &MOVED),
    (&["1.7", "1.8"], &BAD_SENDER),
    (&["1.90"], &OVER_DAILY_LIMIT),
    (&["2.1"], &MAILBOX_OFF),
    (&["2.2"], &MAILBOX_FULL),
    (&["2.3"], &SIZE_FOR_RECIPIENT),
    (&["2.4"], &RECIPIENT_SELECTS),
    (&["2.252"], &SENDER_REFUSED),
    (&["3.2"], &BUSY),
    (&["3.4"], &TOO_LARGE),
    (&["4.1", "4.2", "4.3", "4.4"], &UNREACHED),
    (&["4.5"], &BUSY),
    (&["4.6", "4.14"], &CIRCLE),
    (&["4.7"], &TOO_LATE),
    (&["5.3"], &TOO_MANY_RECIPIENTS),
    (&["6.7", "6.8", "6.9", "6.10"], &NOT_SUPPORTED),
    // Exchange: no login before the message. RFC 4954 §6, and Exchange's wrong login.
    (&["7.57", "7.3", "7.8", "7.9", "7.14"], &TOKEN_REFUSED),
    (&["7.139"], &SUBMISSION_OFF),
    (&["7.60"], &SENDER_REFUSED),
    (&["7.232", "7.233"], &OVER_DAILY_LIMIT),
    (&["7.500"], &BUSY),
    (
        &[
            "7.501", "7.502", "7.503", "7.511", "7.705", "7.708", "7.750",
        ],
        &SENDER_BLOCKED,
    ),
    (
        &["7.12", "7.124", "7.129", "7.133", "7.134", "7.135", "7.136"],
        &RECIPIENT_SELECTS,
    ),
    (&["7.2"], &RECIPIENT_SELECTS),
    // RFC 7372, and Google's for SPF, DKIM and an address of another domain.
    (
        &[
            "7.20", "7.21", "7.22", "7.23", "7.24", "7.25", "7.26", "7.27", "7.30", "7.32",
        ],
        &NOT_AUTHENTICATED,
    ),
    (&["7.28"], &OVER_RATE),
    (&["7.10", "7.11", "7.29"], &NOT_ENCRYPTED),
    (&["7.13", "7.17"], &MAILBOX_OFF),
];

/// Subjects (RFC 3463 §2), for details that aren't listed.
const SUBJECTS: &[(&str, &Rule)] = &[
    ("1", &ADDRESS_REFUSED),
    ("2", &MAILBOX_UNAVAILABLE),
    ("3", &SERVER_TROUBLE),
    ("4", &UNREACHED),
    ("5", &INCOMPATIBLE),
    ("6", &MALFORMED),
    ("7", &REFUSED_BY_RULE),
];

/// The rule for a code in a reply with these words, in lower case.
pub(super) fn with_words(detail: &str, reply: Option<u16>, text: &str) -> Option<&'static Rule> {
    match reply {
        // 530 demands a login, whatever its detail (RFC 4954 §6), and 504 doesn't know the kind of login.
        Some(530 | 535) if detail != "7.139" => return Some(&TOKEN_REFUSED),
        Some(504) => return Some(&INCOMPATIBLE),
        // <https://aka.ms/concurrent_sending>
        Some(432) => return Some(&OVER_RATE),
        // Google's 5.4.5, while 4.4.5 is a busy server.
        Some(500..) if detail == "4.5" => return Some(&OVER_DAILY_LIMIT),
        _ => {}
    }
    let mut rows = WITH_WORDS.iter();
    rows.find(|(known, words, _)| *known == detail && text.contains(words))
        .map(|(_, _, rule)| *rule)
}

pub(super) fn alone(detail: &str) -> Option<&'static Rule> {
    let row = ALONE.iter().find(|(details, _)| details.contains(&detail));
    row.map(|(_, rule)| *rule)
}

pub(super) fn by_subject(detail: &str) -> Option<&'static Rule> {
    let (subject, _) = detail.split_once('.')?;
    let row = SUBJECTS.iter().find(|(known, _)| *known == subject);
    row.map(|(_, rule)| *rule)
}
