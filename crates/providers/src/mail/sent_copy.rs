//! Identifies a message's own copy in the sent mail. A mail client that submits through the gateway saves a copy of its
//! own there, under the same Message-ID and whether or not the message was sent, so only our own header proves it.

use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message_parser::message_parser;

/// Maximum copies with one Message-ID that are checked.
pub(super) const COPIES: usize = 10;

/// A message that may be among the sent ones.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    /// Its id in the log, which its header [`LOG_ID_HEADER`] has.
    pub id: LogId,
    /// Its Message-ID, angle brackets included.
    pub message_id: &'a str,
}

/// The search result for a message in the sent mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The message.
    Message,
    /// Only copies with its Message-ID, which don't prove that it was sent.
    OtherCopies,
    /// Nothing.
    Nothing,
}

impl Sought<'_> {
    /// Whether a value of the header [`LOG_ID_HEADER`] is the message's.
    pub(super) fn is_named_by(&self, value: &str) -> bool {
        value.trim() == self.id.to_string()
    }

    /// Whether a copy is the message, by its header fields.
    pub(super) fn is_headed_by(&self, headers: &[u8]) -> bool {
        message_parser()
            .parse_headers(headers)
            .and_then(|parsed| Some(self.is_named_by(parsed.header_raw(LOG_ID_HEADER)?)))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_header_proves_a_message() {
        let id = LogId::at(chrono::DateTime::UNIX_EPOCH);
        let other = LogId::at(chrono::DateTime::UNIX_EPOCH);
        let sought = Sought {
            id,
            message_id: "<a@example.com>",
        };
        for (headers, expected) in [
            (format!("X-Mailgate-Id: {id}\r\n\r\n"), true),
            (
                format!("From: a@example.com\r\nx-mailgate-id:\r\n {id} \r\n\r\n"),
                true,
            ),
            (format!("X-Mailgate-Id: {other}\r\n\r\n"), false),
            ("Message-ID: <a@example.com>\r\n\r\n".to_owned(), false),
            (
                format!("Subject: {id}\r\n\r\nX-Mailgate-Id: {id}\r\n"),
                false,
            ),
            (String::new(), false),
        ] {
            assert_eq!(
                sought.is_headed_by(headers.as_bytes()),
                expected,
                "{headers:?}"
            );
        }
    }
}
