//! Tells whether a message is a bounce, and what it says.

use std::collections::HashSet;

use crate::bounce::{Bounce, BouncedRecipient};
use crate::delivery_status;
use crate::mime::{self, Message, Part};
use crate::original::Originals;

/// Media types of a delivery status (RFC 3464 §2, RFC 6533 §3).
const STATUS: [&str; 2] = ["message/delivery-status", "message/global-delivery-status"];

/// Media types of a returned message, or of its header (RFC 3462 §2, RFC 6533 §4).
const RETURNED: [&str; 5] = [
    "message/rfc822",
    "message/global",
    "text/rfc822-headers",
    "message/rfc822-headers",
    "message/global-headers",
];

/// Media types of reports about other things: read receipts (RFC 8098), abuse (RFC 5965), TLS (RFC 8460).
const OTHER_REPORTS: [&str; 5] = [
    "message/disposition-notification",
    "message/global-disposition-notification",
    "message/feedback-report",
    "application/tlsrpt+gzip",
    "application/tlsrpt+json",
];

/// Reads a message, which may be cut off anywhere; `None` if it isn't a bounce, or names no message that it is about.
#[must_use]
pub fn read(raw: &[u8]) -> Option<Bounce> {
    let message = mime::split(raw);
    if is_other_report(&message) {
        return None;
    }
    let recipients = by_status(&message)?;
    let mut originals = Originals::default();
    for part in message.leaves.iter().filter(|part| is_returned(part)) {
        originals.returned(&part.content());
    }
    originals.answered(message.root.header);
    finished(recipients, originals)
}

fn is_other_report(message: &Message<'_>) -> bool {
    let names = |name: &str| OTHER_REPORTS.iter().any(|other| other.ends_with(name));
    message
        .multiparts
        .iter()
        .any(|(_, report)| !report.is_empty() && names(&format!("/{report}")))
        || (message.leaves.iter()).any(|part| OTHER_REPORTS.contains(&part.media_type.as_str()))
}

/// The recipients of its delivery status; `None` if it has none.
fn by_status(message: &Message<'_>) -> Option<Vec<BouncedRecipient>> {
    let mut found = None;
    for part in &message.leaves {
        if STATUS.contains(&part.media_type.as_str()) {
            let read = delivery_status::read(&part.content());
            if read.has_groups {
                found.get_or_insert_with(Vec::new).extend(read.recipients);
            }
        }
    }
    found
}

fn is_returned(part: &Part<'_>) -> bool {
    RETURNED.contains(&part.media_type.as_str())
}

fn finished(recipients: Vec<BouncedRecipient>, originals: Originals) -> Option<Bounce> {
    let mut seen = HashSet::new();
    let recipients: Vec<BouncedRecipient> = (recipients.into_iter())
        .filter(|one| seen.insert(one.address.to_lowercase()))
        .take(crate::bounce::RECIPIENTS)
        .collect();
    (!recipients.is_empty() && originals.is_known()).then_some(Bounce {
        message_ids: originals.message_ids,
        log_ids: originals.log_ids,
        recipients,
    })
}
