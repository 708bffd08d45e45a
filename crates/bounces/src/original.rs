//! Identifies the message that a bounce is about.

use std::str::FromStr;

use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message_id::{self, both_ends};

use crate::fields::values;

/// Maximum number of Message-IDs kept.
pub const MESSAGE_IDS: usize = 100;

/// Maximum total length of the Message-IDs of one field, in bytes.
const BYTES: usize = 16 * 1024;

/// Maximum number of log ids kept.
pub const LOG_IDS: usize = 10;

/// Headers of a returned message with its Message-ID, or with its former one if the provider replaced it.
const RETURNED: [&str; 5] = [
    "message-id",
    "x-original-message-id",
    "x-gmail-original-message-id",
    "x-google-original-message-id",
    "x-microsoft-original-message-id",
];

/// Headers of a notification with the original's Message-ID; the last one is Coremail's.
const ANSWERED: [&str; 5] = [
    "in-reply-to",
    "references",
    "x-original-message-id",
    "original-message-id",
    "x-cm-original-message-id",
];

/// Fields of a delivery status with it, in lower case: Gmail's, and one of RFC 8098.
pub(crate) const REPORTED: [&str; 2] = ["x-original-message-id", "original-message-id"];

/// The field of a delivery status with the sender's envelope id (RFC 3464 §2.2.1), often the Message-ID.
pub(crate) const ENVELOPE: &str = "original-envelope-id";

/// The messages that a bounce may be about.
#[derive(Debug, Default)]
pub(crate) struct Originals {
    pub(crate) message_ids: Vec<String>,
    pub(crate) log_ids: Vec<String>,
}

impl Originals {
    /// Considers the header of a returned message.
    pub(crate) fn returned(&mut self, header: &[u8]) {
        for name in RETURNED {
            for value in values(header, name).take(1) {
                self.named(&value, 1);
            }
        }
        for value in values(header, LOG_ID_HEADER) {
            self.logged(value.trim());
        }
    }

    /// Considers the fields of a delivery status that identify the message.
    pub(crate) fn reported<'a>(&mut self, fields: impl IntoIterator<Item = &'a (String, String)>) {
        for (name, value) in fields {
            if name != ENVELOPE {
                self.named(value, 1);
                continue;
            }
            for value in [&unescaped(value.trim()), value.trim()] {
                self.logged(value);
                // The value can be anything.
                if value.contains('@') {
                    self.named(value, 1);
                }
            }
        }
    }

    /// Considers the notification's references.
    pub(crate) fn answered(&mut self, header: &[u8]) {
        for name in ANSWERED {
            for value in values(header, name).take(1) {
                self.named(&value, MESSAGE_IDS);
            }
        }
    }

    /// Adds a log id, if it is valid.
    fn logged(&mut self, id: &str) {
        let is_new = !self.log_ids.iter().any(|known| known == id) && LogId::from_str(id).is_ok();
        if is_new && self.log_ids.len() < LOG_IDS {
            self.log_ids.push(id.to_owned());
        }
    }

    /// Adds up to `count` Message-IDs of a value: the first one, or both ends of a thread.
    fn named(&mut self, value: &str, count: usize) {
        let ids = message_id::all_in(value.as_bytes());
        let encoded = message_id::encoded(value.as_bytes());
        for id in both_ends(ids, count, BYTES).into_iter().chain(encoded) {
            if self.message_ids.len() < MESSAGE_IDS && !self.message_ids.contains(&id) {
                self.message_ids.push(id);
            }
        }
    }

    /// Whether any message was identified.
    pub(crate) fn is_known(&self) -> bool {
        !self.message_ids.is_empty() || !self.log_ids.is_empty()
    }
}

/// Decodes `xtext` (RFC 3461 §4).
fn unescaped(value: &str) -> String {
    let (mut octets, mut rest) = (Vec::new(), value.as_bytes());
    while let [first, behind @ ..] = rest {
        let digit = |place: usize| char::from(*behind.get(place)?).to_digit(16);
        rest = behind;
        match (first, digit(0), digit(1)) {
            (b'+', Some(high), Some(low)) => {
                octets.extend(u8::try_from(high * 16 + low));
                rest = &behind[2..];
            }
            (byte, ..) => octets.push(*byte),
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_returned_headers() {
        let id = LogId(uuid::Uuid::from_u128(7)).to_string();
        let header = format!(
            "Received: x\r\nMessage-Id:\r\n <m1@example.com>\r\nX-Mailgate-Id: {id}\r\nX-Mailgate-ID: {id}\r\n\
             X-Mailgate-Id: log_nonsense\r\n\r\nMessage-ID: <body@example.com>\r\n"
        );
        let mut found = Originals::default();
        found.returned(header.as_bytes());
        found.answered(
            b"In-Reply-To: <m1@example.com>\r\nReferences: <m0@example.com> <m1@example.com>\r\n",
        );
        assert_eq!(found.message_ids, ["<m1@example.com>", "<m0@example.com>"]);
        assert_eq!(found.log_ids, [id]);
    }

    #[test]
    fn ids_without_brackets() {
        let mut found = Originals::default();
        found.returned(b"Message-ID: m1@example.com (added)\n");
        assert_eq!(found.message_ids, ["<m1@example.com>"]);
        for nothing in ["<>", "< >", "<\x7f", "<\x7f>"] {
            let mut found = Originals::default();
            found.returned(format!("Message-ID: {nothing}\n").as_bytes());
            assert!(!found.is_known(), "{nothing:?}");
        }
    }
}
