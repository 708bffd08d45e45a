//! The parser of messages and their header fields.

use std::sync::LazyLock;

use mail_parser::MessageParser;

static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
        .with_address_headers()
        .with_message_ids()
});

/// Parses addresses, Message-IDs and the fields of MIME; the others stay as they are. So do dates: from a malformed one,
/// and from one with a zone of one letter (RFC 5322 §4.3), the parser reads on into the next field, and hides it.
#[must_use]
pub fn message_parser() -> &'static MessageParser {
    &PARSER
}
