//! What a message's header fields say, decoded.

use mail_parser::{HeaderName, HeaderValue, Message, MessageParser};

/// Name and value of each, in their order; `None` if there is no reading them.
pub(crate) fn headers(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    // Taken as text, each is decoded and none is taken apart. (Only a parser told of at least one header heeds its
    // default for the others.)
    let message = MessageParser::new()
        .header_text(HeaderName::Subject)
        .default_header_text()
        .parse_headers(bytes)?;
    Some(decoded(&message))
}

fn decoded(message: &Message<'_>) -> Vec<(String, String)> {
    let headers = message.headers().iter().map(|header| {
        let value = match &header.value {
            HeaderValue::Text(text) => text.to_string(),
            HeaderValue::TextList(texts) => texts.join(", "),
            _ => String::new(),
        };
        let name = match &header.name {
            HeaderName::Other(name) => name.as_ref(),
            known => known.as_str(),
        };
        (name.to_owned(), value)
    });
    headers.collect()
}
