//! A message's header fields, decoded.

use mail_parser::{HeaderName, MessageParser};

use mailgate_types::encoded_words::decoded;

/// Names and values, in order; `None` if they can't be parsed.
pub(crate) fn headers(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let message = MessageParser::new().parse_headers(bytes)?;
    let headers = message.headers().iter().map(|header| {
        let value = bytes.get(header.offset_start as usize..header.offset_end as usize);
        let name = match &header.name {
            HeaderName::Other(name) => name.as_ref(),
            known => known.as_str(),
        };
        (name.to_owned(), decoded(value.unwrap_or_default()))
    });
    Some(headers.collect())
}
