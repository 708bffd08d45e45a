//! Phrases in servers' notifications, in lower case.

/// The message wasn't delivered, or not yet.
const FAILURES: [&str; 71] = [
    "could not be delivered",
    "couldn't be delivered",
    "can not be delivered",
    "cannot be delivered",
    "can't be delivered",
    "not be delivered",
    "not delivered",
    "wasn't delivered",
    "has not been delivered",
    "was undeliverable",
    "is undeliverable",
    "undeliverable",
    "undelivered mail",
    "undelivered message",
    "non-deliver",
    "nondeliver",
    "unable to deliver",
    "not able to deliver",
    "wasn't able to deliver",
    "failed to deliver",
    "could not deliver",
    "couldn't deliver",
    "cannot deliver",
    "can't deliver",
    "attempting to deliver",
    "delivery failed",
    "delivery failure",
    "delivery has failed",
    "delivery to the following",
    "delivery status notification",
    "delivery notification",
    "delivery error",
    "delivery report",
    "delivery attempts",
    "failed permanently",
    "failure notice",
    "permanent error",
    "permanent fatal error",
    "permanent failure",
    "transient non-fatal errors",
    "fatal errors",
    "returned mail",
    "returned to sender",
    "returning message to sender",
    "message was rejected",
    "rejected your message",
    "did not reach",
    "could not be reached",
    "could not be sent",
    "could not send",
    "couldn't send",
    "mail failure",
    "mail error",
    "mail system error",
    "message delayed",
    "user unknown",
    "unknown user",
    "invalid final delivery",
    "no such user",
    "mailbox full",
    "mailbox exceeds",
    "nicht zugestellt",
    "nicht ausgeliefert",
    "unzustellbar",
    "n'a pas pu être",
    "no se pudo entregar",
    "no se ha podido entregar",
    "non è stato possibile",
    "não pôde ser entregue",
    "не может быть доставлено",
    "退信",
];

/// The message is delayed, and may still arrive.
const DELAYS: [&str; 30] = [
    "warning message only",
    "has not yet been delivered",
    "not yet been delivered",
    "not been delivered yet",
    "has been delayed",
    "is delayed",
    "was delayed",
    "delivery delayed",
    "delayed mail",
    "message delayed",
    "delivery status notification (delay)",
    "delivery delay",
    "hours without being delivered",
    "after more than",
    "could not send message for past",
    "still undelivered after",
    "delivery attempts will continue",
    "will continue to try",
    "will continue trying",
    "will continue attempting",
    "will be retried",
    "will retry",
    "will keep trying",
    "still trying to deliver",
    "still being retried",
    "attempts to deliver the message will continue",
    "do not need to resend",
    "don't need to resend",
    "no need to resend",
    "temporarily delayed",
];

/// No more attempts, regardless of other phrases.
const ENDS: [&str; 8] = [
    "permanent error",
    "permanent fatal error",
    "failed permanently",
    "permanent failure",
    "not going to try again",
    "given up",
    "will not be retried",
    "no further attempts",
];

/// Lines before the original.
const ORIGINALS: [&str; 14] = [
    "copy of the message",
    "copy of the original message",
    "copy of your message",
    "original message follows",
    "original message --",
    "original message:",
    "original message headers",
    "original message header",
    "the original message is following",
    "header of the original message",
    "unsent message below",
    "unsent message follows",
    "returned message follows",
    "message header follows",
];

/// Maximum length of a line before the original.
const LINE: usize = 120;

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// Whether the text, in lower case, says that a message isn't delivered.
pub(crate) fn tells_failure(text: &str) -> bool {
    has(text, &FAILURES) || has(text, &DELAYS)
}

/// Whether the text, in lower case, says that the message may still arrive.
pub(crate) fn tells_delay(text: &str) -> bool {
    has(text, &DELAYS) && !has(text, &ENDS)
}

/// Whether the original follows this line.
pub(crate) fn announces_original(line: &str) -> bool {
    line.len() <= LINE && has(&line.to_lowercase(), &ORIGINALS)
}
