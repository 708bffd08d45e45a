//! The ids in a message's own header: its Message-ID, and its id in the log.

use mail_parser::{HeaderName, HeaderValue};

use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message::Message;
use mailgate_types::message_parser::message_parser;

/// Bytes that are searched for them.
const HEADER_BYTES: usize = 1024 * 1024;

/// The message's own Message-ID, angle brackets included.
pub(super) fn own_message_id(message: &Message) -> Option<String> {
    message_id(&beginning(message))
}

/// The id in the log that the gateway has put into the message's header.
pub(super) fn own_log_id(message: &Message) -> Option<LogId> {
    let headers = beginning(message);
    let parsed = message_parser().parse_headers(&headers)?;
    parsed.header_raw(LOG_ID_HEADER)?.trim().parse().ok()
}

/// The message's first bytes, with all of its header.
fn beginning(message: &Message) -> Vec<u8> {
    let mut headers = Vec::new();
    for chunk in message.chunks() {
        // The end of the headers may span two chunks.
        let from = headers.len().saturating_sub(3);
        headers.extend_from_slice(chunk);
        if headers.len() > HEADER_BYTES
            || memchr::memmem::find(&headers[from..], b"\r\n\r\n").is_some()
        {
            break;
        }
    }
    headers
}

/// The Message-ID header with its angle brackets, from a message's first lines.
fn message_id(headers: &[u8]) -> Option<String> {
    let parsed = message_parser().parse_headers(headers)?;
    match parsed.header(HeaderName::MessageId)? {
        HeaderValue::Text(id) => Some(format!("<{id}>")),
        HeaderValue::TextList(ids) => ids.first().map(|id| format!("<{id}>")),
        _ => None,
    }
}
