//! The gateway's own texts. The rows have their beginnings, which stay the same, rather than the constants: the log also
//! has texts of earlier releases.

use mailgate_providers::explanation::{
    Concern, DISCONNECTED, OVER_DAILY_LIMIT, OVER_RATE, Remedy, Rule, SENDER_REFUSED,
};

/// The beginning of a text about a message that has waited for too long.
const TOO_OLD: &str = "The message has waited for the maximum time: ";

const CANCELLED: Rule = Rule {
    meaning: "The message was cancelled before it was sent.",
    remedy: Remedy::Always("If it is still wanted, submit it again."),
    concerns: Concern::Message,
};

const UNCONFIRMED: Rule = Rule {
    meaning: "Nobody knows whether the message was sent: the connection ended at the last moment, and the mailbox's Sent \
              folder did not tell.",
    remedy: Remedy::Always(
        "Ask the recipient, or look in the mailbox's Sent folder, and send the message again only if it did not arrive.",
    ),
    concerns: Concern::Message,
};

const LOOKED_FOR: Rule = Rule {
    meaning: "Sending the message was interrupted, and it may have been sent already.",
    remedy: Remedy::Look,
    concerns: Concern::Message,
};

const STOPPED: Rule = Rule {
    meaning: "The gateway stopped before the message was sent.",
    remedy: Remedy::Always("Send the message again."),
    concerns: Concern::Operator,
};

const APP_DELETED: Rule = Rule {
    meaning: "The app that submitted the message was deleted.",
    remedy: Remedy::Always("If the message is still wanted, submit it with another app."),
    concerns: Concern::Account,
};

const SUSPENDED: Rule = Rule {
    meaning: "The gateway's operator has suspended the account, so none of its messages are sent.",
    remedy: Remedy::Either {
        waiting: "Ask the gateway's operator to resume the account; the gateway then sends the message by itself.",
        ended: "Ask the gateway's operator to resume the account, then send the message again.",
    },
    concerns: Concern::Account,
};

const UNPAID: Rule = Rule {
    meaning: "A payment for the subscription is due, so no messages are sent.",
    remedy: Remedy::Either {
        waiting: "Pay the open invoice on the portal's billing page; the gateway then sends the message by itself.",
        ended: "Pay the open invoice on the portal's billing page, then send the message again.",
    },
    concerns: Concern::Account,
};

const SUBSCRIPTION_ENDED: Rule = Rule {
    meaning: "The subscription has ended, so no messages are sent.",
    remedy: Remedy::Do("Start a new subscription on the portal's billing page"),
    concerns: Concern::Account,
};

const KEY_ENDED: Rule = Rule {
    meaning: "The send key with which the message was scheduled is no longer valid for it.",
    remedy: Remedy::Do("Have the app use a send key that is valid"),
    concerns: Concern::Account,
};

const GATEWAY_TROUBLE: Rule = Rule {
    meaning: "The gateway has a problem of its own, and can't send the message at the moment.",
    remedy: Remedy::Do("If this lasts, tell the gateway's operator"),
    concerns: Concern::Operator,
};

const BYTES_GONE: Rule = Rule {
    meaning: "The gateway no longer has the content of the message.",
    remedy: Remedy::Do("Tell the gateway's operator"),
    concerns: Concern::Operator,
};

const NOT_SET_UP: Rule = Rule {
    meaning: "The gateway's operator has not set up the mailbox's provider.",
    remedy: Remedy::Do("Tell the gateway's operator"),
    concerns: Concern::Operator,
};

const BUSY: Rule = Rule {
    meaning: "The gateway is sending too many messages to take this one now.",
    remedy: Remedy::Retry,
    concerns: Concern::Operator,
};

const REFRESHED_ELSEWHERE: Rule = Rule {
    meaning: "The gateway could not renew its access to the mailbox in time.",
    remedy: Remedy::Retry,
    concerns: Concern::Operator,
};

const NOT_CHECKED: Rule = Rule {
    meaning: "The message may have been sent, and the mailbox's Sent folder can't be read at the moment.",
    remedy: Remedy::Look,
    concerns: Concern::Mailbox,
};

const PAUSED: Rule = Rule {
    meaning: "The provider has asked for a pause in sending from the mailbox.",
    ..OVER_DAILY_LIMIT
};

const WORDS_LOST: Rule = Rule {
    meaning: "The provider did not accept the message, and its words could not be stored.",
    remedy: Remedy::Retry,
    concerns: Concern::Provider,
};

const TEXTS: &[(&str, &Rule)] = &[
    ("Cancelled", &CANCELLED),
    ("The provider's words could not be stored", &WORDS_LOST),
    ("Delivery is unconfirmed", &UNCONFIRMED),
    ("The previous attempt was interrupted", &LOOKED_FOR),
    ("the gateway stopped, or the connection broke,", &LOOKED_FOR),
    ("the mailbox's sent mail can't be checked", &NOT_CHECKED),
    ("The gateway stopped before the message was sent", &STOPPED),
    ("The app was deleted", &APP_DELETED),
    ("Sending is suspended: the operator", &SUSPENDED),
    ("Sending is suspended: the subscription", &UNPAID),
    (
        "Sending is blocked: the subscription has ended",
        &SUBSCRIPTION_ENDED,
    ),
    ("The mailbox is no longer connected", &DISCONNECTED),
    ("5.7.8 The mailbox is no longer connected", &DISCONNECTED),
    ("5.7.1 The mailbox may no longer send as", &SENDER_REFUSED),
    ("5.7.1 The mailbox may not send as", &SENDER_REFUSED),
    (
        "The send key that the message was scheduled with",
        &KEY_ENDED,
    ),
    ("the gateway can't check its send key", &GATEWAY_TROUBLE),
    ("the gateway's database can't be", &GATEWAY_TROUBLE),
    ("the gateway can't access the mailbox", &GATEWAY_TROUBLE),
    ("The stored message is gone", &BYTES_GONE),
    ("plugin_a is not set up", &NOT_SET_UP),
    ("plugin_b is not set up", &NOT_SET_UP),
    ("Too many messages are being sent at the moment", &BUSY),
    (
        "another replica is refreshing the token",
        &REFRESHED_ELSEWHERE,
    ),
    ("the provider has asked for a pause in sending", &PAUSED),
    ("the mailbox has reached its daily limit", &OVER_DAILY_LIMIT),
    ("the mailbox has reached its limit per minute", &OVER_RATE),
];

/// The rule for one of our texts.
pub(super) fn rule(text: &str) -> Option<&'static Rule> {
    let known = TEXTS
        .iter()
        .find(|(beginning, _)| text.starts_with(beginning));
    known.map(|(_, rule)| *rule)
}

/// The text without the words that the message has waited for too long.
pub(super) fn without_age(text: &str) -> &str {
    text.strip_prefix(TOO_OLD).unwrap_or(text)
}
