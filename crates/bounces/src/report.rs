//! Recognizes and parses bounces.

use std::collections::HashSet;

use crate::bounce::{Bounce, BouncedRecipient, RECIPIENTS};
use crate::candidate::{is_automatic, subject};
use crate::delivery_status::{self, DeliveryStatus};
use crate::fields::values;
use crate::inline::{self, Inline};
use crate::mime::{self, Message, Part};
use crate::notice::{Notice, is_by_server};
use crate::original::Originals;
use crate::phrases;
use crate::text::{in_charset, without_tags};

/// Media types of a delivery status (RFC 3464 §2, RFC 6533 §3).
const STATUS: [&str; 2] = ["message/delivery-status", "message/global-delivery-status"];

/// Media types of a returned message, or of its header (RFC 3462 §2, RFC 6533 §4).
const RETURNED: [&str; 6] = [
    "message/rfc822",
    "message/global",
    "text/rfc822-headers",
    "message/rfc822-headers",
    // Zoho's.
    "text/rfc822",
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

/// Bytes of text to read.
const TEXT: usize = 64 * 1024;

/// Subject prefixes of mail clients, in lower case.
const REPLIES: [&str; 14] = [
    "re:",
    "aw:",
    "antw:",
    "sv:",
    "vs:",
    "fwd:",
    "fw:",
    "wg:",
    "tr:",
    "rv:",
    "res:",
    "r:",
    "odp:",
    "\u{56de}\u{590d}:",
];

/// Headers that only servers add, about the message that they return.
const MARKS: [&str; 2] = ["x-failed-recipients", "x-cm-original-message-id"];

/// Reads a message, possibly truncated; `None` if it isn't a bounce, or doesn't identify the original.
///
/// A report that conforms to RFC 3464 is accepted from any sender. Prose is read only if a server seems to have written
/// it: a person may quote a bounce, and a vacation reply may quote anything.
#[must_use]
pub fn read(raw: &[u8]) -> Option<Bounce> {
    let message = mime::split(raw);
    let header = message.root.header;
    let subject = subject(header);
    let is_report =
        (message.multiparts.iter()).any(|(media_type, _)| media_type == "multipart/report");
    let is_by_server = is_by_server(header);
    let is_marked =
        is_automatic(header) || (MARKS.iter()).any(|mark| values(header, mark).next().is_some());
    let is_credible = is_by_server || is_automatic(header);
    if is_other_report(&message) || !(is_report || is_credible && !is_answer(&subject)) {
        return None;
    }
    let text = words(&message);
    let lines: Vec<&str> = text.lines().collect();
    let found = inline::find(&lines);
    let mut originals = Originals::default();
    let mut returned = returned(&message);
    originals.returned(&returned);
    if !originals.is_known() {
        // Its header may be indented, or preceded by empty lines.
        let again = inline::find(
            &String::from_utf8_lossy(&returned)
                .lines()
                .collect::<Vec<&str>>(),
        );
        let header = if again.header.is_empty() {
            &found.header
        } else {
            &again.header
        };
        originals.returned(header.as_bytes());
        if originals.is_known() {
            returned = header.clone().into_bytes();
        }
    }
    let is_returned = originals.is_known();
    let status = by_status(&message);
    originals.reported(&status.names);
    originals.answered(header);
    let recipients = status.has_groups.then_some(status.recipients).or_else(|| {
        // An automatic reply by an unknown sender must identify the original. A person may use a postmaster address:
        // without the original, the header must mark the mail as automatic.
        if !is_credible || !(is_returned || is_by_server && is_marked) {
            return None;
        }
        let flat = delivery_status::read(text.as_bytes());
        if flat.is_report() {
            originals.reported(&flat.names);
            return Some(flat.recipients);
        }
        let notice = Notice {
            header,
            subject: &subject,
            lines: own_words(&lines, &found),
            original: &returned,
        };
        Some(notice.recipients())
    })?;
    finished(recipients, originals)
}

fn is_answer(subject: &str) -> bool {
    let subject = subject.trim_start().to_lowercase();
    REPLIES.iter().any(|prefix| subject.starts_with(prefix))
}

fn is_other_report(message: &Message<'_>) -> bool {
    let is_other = |report: &str| {
        let name = format!("/{report}");
        !report.is_empty() && OTHER_REPORTS.iter().any(|other| other.ends_with(&name))
    };
    (message.multiparts.iter()).any(|(_, report)| is_other(report) || report == "tlsrpt")
        || (message.leaves.iter()).any(|part| OTHER_REPORTS.contains(&part.media_type.as_str()))
}

/// The content of the parts that are a delivery status.
fn by_status(message: &Message<'_>) -> DeliveryStatus {
    let mut found = DeliveryStatus::default();
    for part in &message.leaves {
        if STATUS.contains(&part.media_type.as_str()) {
            let read = delivery_status::read(&part.content());
            found.names.extend(read.names);
            if read.has_groups {
                found.has_groups = true;
                found.recipients.extend(read.recipients);
            }
        }
    }
    found
}

/// The header of the message that it returns; empty if there is none.
fn returned(message: &Message<'_>) -> Vec<u8> {
    let is_returned = |part: &&Part<'_>| RETURNED.contains(&part.media_type.as_str());
    let mut content = (message.leaves.iter().find(is_returned))
        .map(Part::content)
        .unwrap_or_default();
    content.truncate(TEXT);
    content
}

/// Its text, or the text of its HTML if it has none.
fn words(message: &Message<'_>) -> String {
    for media_type in ["text/plain", "text/html"] {
        let mut text = String::new();
        for part in message
            .leaves
            .iter()
            .filter(|part| part.media_type == media_type)
        {
            let mut content = part.content();
            content.truncate(TEXT - text.len().min(TEXT));
            text.push_str(&in_charset(&content, part.parameter("charset")));
            text.push('\n');
        }
        if !text.trim().is_empty() {
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            return if media_type == "text/html" {
                without_tags(&text)
            } else {
                text
            };
        }
    }
    String::new()
}

/// The lines before the original.
fn own_words<'a>(lines: &'a [&'a str], found: &Inline) -> &'a [&'a str] {
    let announced = lines
        .iter()
        .position(|line| phrases::announces_original(line));
    let end = [announced, found.line].into_iter().flatten().min();
    &lines[..end.unwrap_or(lines.len())]
}

fn finished(recipients: Vec<BouncedRecipient>, originals: Originals) -> Option<Bounce> {
    let mut seen = HashSet::new();
    let recipients: Vec<BouncedRecipient> = (recipients.into_iter())
        .filter(|one| seen.insert(one.address.to_lowercase()))
        .take(RECIPIENTS)
        .collect();
    (!recipients.is_empty() && originals.is_known()).then_some(Bounce {
        message_ids: originals.message_ids,
        log_ids: originals.log_ids,
        recipients,
    })
}
