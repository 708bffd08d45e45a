//! The rules that more than one table uses.

use super::rule::Concern::{Mailbox, Message, Operator, Provider, Recipient};
use super::rule::Remedy::{Do, Either, Look, Retry};
use super::rule::{Concern, Remedy, Rule};

const fn rule(concerns: Concern, meaning: &'static str, remedy: Remedy) -> Rule {
    Rule {
        meaning,
        remedy,
        concerns,
    }
}

// Recipients.

pub(super) const NO_SUCH_ADDRESS: Rule = rule(
    Recipient,
    "The recipient's address does not exist, or accepts no mail.",
    Do("Check the address with the recipient and correct it in your app"),
);
pub(super) const NO_SUCH_DOMAIN: Rule = rule(
    Recipient,
    "The part of the recipient's address after the @ does not exist, or has no mail server.",
    Do("Check the address with the recipient and correct it in your app"),
);
pub(super) const BAD_ADDRESS: Rule = rule(
    Recipient,
    "A recipient's address is not a valid email address.",
    Do("Correct the addresses of the message in your app"),
);
pub(super) const MAILBOX_FULL: Rule = rule(
    Recipient,
    "The recipient's mailbox is full.",
    Do("Ask the recipient to make room in the mailbox"),
);
pub(super) const MAILBOX_OFF: Rule = rule(
    Recipient,
    "The recipient's mailbox is switched off, or accepts no messages.",
    Do("Ask the recipient for an address that is in use"),
);
pub(super) const RECIPIENT_BUSY: Rule = rule(
    Recipient,
    "The recipient gets more mail at the moment than their provider accepts.",
    Retry,
);
pub(super) const RECIPIENT_SELECTS: Rule = rule(
    Recipient,
    "The recipient accepts mail only from certain senders, and the sender isn't one of them.",
    Do("Ask the recipient to permit the sender's address"),
);
pub(super) const TOO_MANY_RECIPIENTS: Rule = rule(
    Message,
    "The message has more recipients than the mail server accepts.",
    Do("Divide the recipients among several messages"),
);
pub(super) const UNREACHED: Rule = rule(
    Recipient,
    "A mail server on the way to the recipient could not be reached, or did not answer in time.",
    Either {
        waiting: "Nothing to do: the gateway tries again by itself.",
        ended: "Check the part of the address after the @ with the recipient, then send the message again.",
    },
);
pub(super) const CIRCLE: Rule = rule(
    Recipient,
    "The recipient's mail servers pass the message around in a circle.",
    Do("Ask the recipient to tell the administrator of their mail server"),
);
pub(super) const ADDRESS_REFUSED: Rule = rule(
    Recipient,
    "A recipient's address was not accepted.",
    Do("Check the addresses of the message and correct them in your app"),
);
pub(super) const MAILBOX_UNAVAILABLE: Rule = rule(
    Recipient,
    "The recipient's mailbox is not available for the message.",
    Either {
        waiting: "Nothing to do: the gateway tries again by itself.",
        ended: "Check with the recipient whether the address is right and still in use, then send the message again.",
    },
);

// The message.

pub(super) const TOO_LARGE: Rule = rule(
    Message,
    "The message is larger than the mail server accepts.",
    Do("Make the message smaller, for example by replacing attachments with links"),
);
pub(super) const MALFORMED: Rule = rule(
    Message,
    "The message has an error in its structure, so the provider does not accept it.",
    Do("Have the app's developer correct how the app builds the message"),
);
pub(super) const LOOKS_UNWANTED: Rule = rule(
    Message,
    "The message was refused because it looks like spam.",
    Do(
        "Change the message's text, links or attachments, or ask the recipient to permit the sender's address",
    ),
);
pub(super) const REFUSED_BY_RULE: Rule = rule(
    Message,
    "The message was refused by a rule of the mail server: against spam, or about who may write to whom.",
    Either {
        waiting: "Nothing to do: the gateway tries again by itself.",
        ended: "Ask the recipient, and the mailbox's administrator, what has to change for the message to be permitted.",
    },
);
pub(super) const FILE_BLOCKED: Rule = rule(
    Message,
    "The message has a file or a link of a kind that the mail server blocks for security.",
    Do("Leave the file out, or replace it with a link"),
);

// The mailbox.

pub(super) const RECONNECT: Remedy = Either {
    waiting: "Ask the mailbox's user to reconnect it with a reconnect link, which you get on the mailbox's page; the \
              gateway tries again by itself.",
    ended: "Ask the mailbox's user to reconnect it with a reconnect link, which you get on the mailbox's page, then send \
            the message again.",
};

/// The mailbox is disconnected.
pub const DISCONNECTED: Rule = rule(
    Mailbox,
    "The mailbox is no longer connected: its user or the provider has ended the gateway's access.",
    RECONNECT,
);
pub(super) const TOKEN_REFUSED: Rule = rule(
    Mailbox,
    "The provider did not accept the gateway's sign-in to the mailbox.",
    RECONNECT,
);
pub(super) const SCOPE_MISSING: Rule = rule(
    Mailbox,
    "The mailbox's user has connected it without the permission to send.",
    Do(
        "Ask the mailbox's user to reconnect it with a reconnect link, and to grant all permissions",
    ),
);
pub(super) const ACCESS_DENIED: Rule = rule(
    Mailbox,
    "The provider does not permit the gateway to send from this mailbox.",
    Do(
        "Ask the mailbox's user to reconnect it with a reconnect link, and the organization's administrator to permit the app",
    ),
);
pub(super) const ADMINISTRATOR_FORBIDS: Rule = rule(
    Mailbox,
    "An administrator of the user's organization does not permit apps to send from its mailboxes.",
    Do("Ask the organization's administrator to permit the app"),
);
/// The mailbox may not send as this address.
pub const SENDER_REFUSED: Rule = rule(
    Mailbox,
    "The mailbox is not permitted to use this sender address.",
    Do("Send from the mailbox's own address, or ask its administrator to permit the other one"),
);
pub(super) const SENDER_BLOCKED: Rule = rule(
    Mailbox,
    "The provider has blocked the mailbox or its organization from sending, on suspicion of spam.",
    Do("Ask the organization's administrator to have the provider remove the block"),
);
pub(super) const HOST_BLOCKED: Rule = rule(
    Provider,
    "The recipient's mail server blocks the server that the provider sends from.",
    Do(
        "Ask the recipient to have the sender's domain permitted, or reach the recipient in another way",
    ),
);
pub(super) const SENDER_FULL: Rule = rule(
    Mailbox,
    "The mailbox that sends is full, or used too much.",
    Do("Ask the mailbox's user to make room in it"),
);
pub(super) const NO_MAILBOX: Rule = rule(
    Mailbox,
    "The connected account has no active mailbox with the provider.",
    Do(
        "Ask the account's administrator to activate its mailbox, or its user to connect another one",
    ),
);
pub(super) const NOT_AUTHENTICATED: Rule = rule(
    Mailbox,
    "The recipient's mail server could not verify that the message comes from the sender's domain (SPF, DKIM, DMARC).",
    Do(
        "Ask the administrator of the sender's domain to set up SPF, DKIM and DMARC as the provider describes",
    ),
);
/// The mailbox has sent all that it may in a day.
pub const OVER_DAILY_LIMIT: Rule = rule(
    Mailbox,
    "The mailbox, or its organization, has reached its provider's daily sending limit.",
    Either {
        waiting: "Nothing to do: the gateway pauses the mailbox for some hours, and then tries again by itself.",
        ended: "Send the message again on another day, or from another mailbox.",
    },
);
/// The mailbox sends too fast.
pub const OVER_RATE: Rule = rule(
    Mailbox,
    "The mailbox sends more messages at a time than its limit permits.",
    Either {
        waiting: "Nothing to do: the gateway tries again by itself, more slowly.",
        ended: "Send the message again, and spread messages over more time or more mailboxes.",
    },
);

// The provider.

pub(super) const BUSY: Rule = rule(
    Provider,
    "The provider's mail server is busy, or out of order for the moment.",
    Retry,
);
pub(super) const UNCLEAR: Rule = rule(
    Provider,
    "The provider had a problem of its own while it processed the message.",
    Look,
);
pub(super) const LATE: Rule = rule(Provider, "The provider did not answer in time.", Look);
pub(super) const BROKEN: Rule = rule(
    Provider,
    "The connection to the provider broke while the message was on its way.",
    Look,
);
pub(super) const UNREACHABLE: Rule = rule(
    Provider,
    "The provider could not be reached over the network.",
    Retry,
);
pub(super) const PASSING: Rule = rule(
    Provider,
    "The provider could not process the message at that moment.",
    Retry,
);
pub(super) const THROTTLED: Rule = rule(
    Provider,
    "The gateway sends the provider more requests at a time than it permits.",
    Retry,
);
pub(super) const SIGN_IN_LATER: Rule = rule(
    Provider,
    "The provider could not check the gateway's sign-in to the mailbox at that moment.",
    Retry,
);

pub(super) const SERVER_TROUBLE: Rule = rule(
    Provider,
    "A mail server on the way has a problem of its own, and does not take the message.",
    Either {
        waiting: "Nothing to do: the gateway tries again by itself.",
        ended: "Send the message again, and if it fails again, ask the recipient to tell the administrator of their mail \
                server.",
    },
);

// The operator.

pub(super) const CLIENT_REFUSED: Rule = rule(
    Operator,
    "The provider does not accept the gateway's own credentials, so no mailbox can be signed in to.",
    Do(
        "Tell the gateway's operator to check its client ID, client secret and scopes at the provider",
    ),
);
pub(super) const API_OFF: Rule = rule(
    Operator,
    "The gateway's operator has not switched on the Gmail API in the gateway's project at Google.",
    Do("Tell the gateway's operator to switch on the Gmail API in the Google Cloud console"),
);
pub(super) const PROJECT_LIMIT: Rule = rule(
    Operator,
    "The gateway has used up the requests that Google permits its project in a day.",
    Either {
        waiting: "Nothing to do: the gateway pauses for some hours, and then tries again by itself.",
        ended: "Tell the gateway's operator to have the project's limit raised, then send the message again.",
    },
);
pub(super) const INCOMPATIBLE: Rule = rule(
    Operator,
    "The gateway and the provider's server could not agree on how to send the message.",
    Do("Tell the gateway's operator, with the words in the message's attempts"),
);
pub(super) const NOT_SECURE: Rule = rule(
    Operator,
    "No secure connection to the provider could be made, and the gateway uses no other.",
    Do(
        "Tell the gateway's operator to check the provider's address, port and certificate in the settings",
    ),
);
