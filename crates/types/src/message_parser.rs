//! The parser of messages and their header fields.

use std::sync::LazyLock;

use mail_parser::MessageParser;

static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
        .with_address_headers()
        .with_message_ids()
});

/// Parses addresses, Message-IDs and MIME fields only. Dates stay raw: after a malformed one, or one with a
/// single-letter zone (RFC 5322 §4.3), the parser would swallow the next field.
#[must_use]
pub fn message_parser() -> &'static MessageParser {
    &PARSER
}
