//! What providers and receivers say when a message fails.

use super::random::Random;
use mailgate_types::plugin::Plugin;

/// Final ones that either provider relays from a receiver.
const PERMANENT: [&str; 6] = [
    "550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos or unnecessary spaces.",
    "552 5.2.2 The recipient's mailbox is full and can't accept messages now.",
    "554 5.7.1 Message rejected: content was classified as spam by the recipient's policy.",
    "553 5.1.3 The recipient address is not a valid RFC 5321 address.",
    "552 5.3.4 Message size exceeds fixed maximum message size",
    "550 5.4.1 Recipient address rejected: Access denied.",
];

const PERMANENT_OF_A: [&str; 3] = [
    "550 5.7.26 This mail has been blocked because the sender is unauthenticated.",
    "HTTP 403 forbidden: Delegation denied for this mailbox",
    "HTTP 400 invalidArgument: Invalid To header",
];

const PERMANENT_OF_B: [&str; 3] = [
    "Microsoft Graph answered 400 ErrorInvalidRecipients: At least one recipient is not valid.",
    "Microsoft Graph answered 403 ErrorAccessDenied: Access is denied. Check credentials and try again.",
    "554 5.2.252 SendAsDenied; this account is not allowed to send as the address",
];

const TEMPORARY: [&str; 3] = [
    "451 4.3.0 Mail server temporarily rejected message.",
    "450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.",
    "the connection to the provider broke: operation timed out",
];

const TEMPORARY_OF_A: [&str; 2] = [
    "421 4.7.0 Temporary System Problem. Try again later.",
    "HTTP 429 rateLimitExceeded: User-rate limit exceeded. Retry later.",
];

const TEMPORARY_OF_B: [&str; 2] = [
    "432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded",
    "Microsoft Graph answered 503 serviceNotAvailable: The service is temporarily unavailable.",
];

/// A message that may have arrived, and is looked for.
pub(super) const BROKEN: &str = "the connection to the provider broke: connection closed";

/// A message that may have arrived: nobody knows.
pub(super) const UNCONFIRMED: &str = "Delivery is unconfirmed: sending was interrupted, and the Sent folder gives no answer; it may have \
    arrived, and was not sent again (The connection closed before the answer)";

/// Why an attempt has failed for good.
pub(super) fn permanent(plugin: Plugin, random: &mut Random) -> &'static str {
    let own: &[&str] = match plugin {
        Plugin::A => &PERMANENT_OF_A,
        Plugin::B => &PERMANENT_OF_B,
    };
    let is_own = random.percent(30);
    random.word(if is_own { own } else { &PERMANENT })
}

/// Why an attempt has failed for now.
pub(super) fn temporary(plugin: Plugin, random: &mut Random) -> &'static str {
    let own: &[&str] = match plugin {
        Plugin::A => &TEMPORARY_OF_A,
        Plugin::B => &TEMPORARY_OF_B,
    };
    let is_own = random.percent(50);
    random.word(if is_own { own } else { &TEMPORARY })
}

/// The status and the diagnostic of a bounce, with `{to}`.
pub(super) const BOUNCES: [(&str, &str); 4] = [
    (
        "5.1.1",
        "smtp; 550 5.1.1 <{to}>: Recipient address rejected: User unknown in virtual mailbox table",
    ),
    (
        "5.1.10",
        "smtp; 550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient {to} not found by SMTP address lookup",
    ),
    (
        "5.7.1",
        "smtp; 554 5.7.1 Service unavailable; Client host blocked by the receiver's policy",
    ),
    ("5.4.4", "smtp; 550 5.4.4 Host or domain name not found"),
];

/// The same of a delay.
pub(super) const DELAYS: [(&str, &str); 2] = [
    (
        "4.4.1",
        "smtp; 451 4.4.1 Connection timed out; delivery is tried again for two days",
    ),
    ("4.2.2", "smtp; 452 4.2.2 The mailbox of {to} is full"),
];
