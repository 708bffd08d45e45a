//! What a bounce says about the message that it returns.

use std::str::FromStr;

use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message_id;

use crate::fields::values;

/// Message-IDs that are kept.
pub const MESSAGE_IDS: usize = 10;

/// Log ids that are kept.
pub const LOG_IDS: usize = 10;

/// Headers of a returned message that have its Message-ID, or the one that it had before the provider gave it another.
const RETURNED: [&str; 4] = [
    "message-id",
    "x-gmail-original-message-id",
    "x-google-original-message-id",
    "x-microsoft-original-message-id",
];

/// Headers of a notification that have it; the last one is Coremail's.
const ANSWERED: [&str; 3] = ["in-reply-to", "references", "x-cm-original-message-id"];

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
            let id = value.trim().to_owned();
            let is_new = !self.log_ids.contains(&id) && LogId::from_str(&id).is_ok();
            if is_new && self.log_ids.len() < LOG_IDS {
                self.log_ids.push(id);
            }
        }
    }

    /// Considers what the notification says that it answers.
    pub(crate) fn answered(&mut self, header: &[u8]) {
        for name in ANSWERED {
            for value in values(header, name).take(1) {
                self.named(&value, MESSAGE_IDS);
            }
        }
    }

    /// Adds the first Message-IDs of a value.
    fn named(&mut self, value: &str, count: usize) {
        let bracketed = value
            .split('<')
            .skip(1)
            .filter_map(|rest| rest.split_once('>').map(|(id, _)| id));
        let mut ids: Vec<&str> = bracketed.take(count).collect();
        if ids.is_empty() {
            // Some have no brackets.
            ids = value.split_whitespace().take(count).collect();
        }
        for id in ids {
            let id = id.trim_matches(['<', '>', ' ']);
            let id = message_id::bounded(&format!("<{id}>"));
            // One of control characters alone has nothing left.
            if id == "<>" {
                continue;
            }
            if self.message_ids.len() < MESSAGE_IDS && !self.message_ids.contains(&id) {
                self.message_ids.push(id);
            }
        }
    }

    /// Whether any message is named.
    pub(crate) fn is_known(&self) -> bool {
        !self.message_ids.is_empty() || !self.log_ids.is_empty()
    }
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
