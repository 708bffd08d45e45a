//! Words of servers, in lower case.

use super::super::catalogue::{
    LOOKS_UNWANTED, MAILBOX_FULL, NO_SUCH_ADDRESS, NOT_AUTHENTICATED, OVER_DAILY_LIMIT,
    SENDER_REFUSED, TOO_LARGE,
};
use super::super::rule::Rule;

/// Those that say more than any code: Exchange's store reports with general ones
/// (<https://learn.microsoft.com/office365/servicedescriptions/exchange-online-service-description/exchange-online-limits>).
const CERTAIN: &[(&str, &Rule)] = &[
    ("submissionquotaexceeded", &OVER_DAILY_LIMIT),
    ("sendasdenied", &SENDER_REFUSED),
    ("to send as this sender", &SENDER_REFUSED),
];

/// Those of servers without a code, or with one that says little.
const USUAL: &[(&str, &Rule)] = &[
    ("user unknown", &NO_SUCH_ADDRESS),
    ("unknown user", &NO_SUCH_ADDRESS),
    ("no such user", &NO_SUCH_ADDRESS),
    ("no such recipient", &NO_SUCH_ADDRESS),
    ("recipient not found", &NO_SUCH_ADDRESS),
    ("mailbox not found", &NO_SUCH_ADDRESS),
    ("does not exist", &NO_SUCH_ADDRESS),
    ("doesn't exist", &NO_SUCH_ADDRESS),
    ("no mailbox here", &NO_SUCH_ADDRESS),
    ("mailbox full", &MAILBOX_FULL),
    ("mailbox is full", &MAILBOX_FULL),
    ("over quota", &MAILBOX_FULL),
    ("quota exceeded", &MAILBOX_FULL),
    ("out of storage", &MAILBOX_FULL),
    ("message too large", &TOO_LARGE),
    ("message size exceeds", &TOO_LARGE),
    ("too big", &TOO_LARGE),
    ("dmarc", &NOT_AUTHENTICATED),
    ("dkim", &NOT_AUTHENTICATED),
    ("spf ", &NOT_AUTHENTICATED),
    ("spam", &LOOKS_UNWANTED),
    ("unsolicited", &LOOKS_UNWANTED),
    ("blacklist", &LOOKS_UNWANTED),
    ("blocklist", &LOOKS_UNWANTED),
    ("block list", &LOOKS_UNWANTED),
];

pub(super) fn certain(text: &str) -> Option<&'static Rule> {
    find(CERTAIN, text)
}

pub(super) fn usual(text: &str) -> Option<&'static Rule> {
    find(USUAL, text)
}

fn find(rows: &'static [(&str, &Rule)], text: &str) -> Option<&'static Rule> {
    let row = rows.iter().find(|(words, _)| text.contains(words));
    row.map(|(_, rule)| *rule)
}
