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

/// The header fields of a message whose names, in lower case, are `wanted`, with their folds.
pub(crate) fn fields(mime: &[u8], wanted: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut is_kept = false;
    for line in header(mime).split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let name = name.trim_ascii().to_ascii_lowercase();
            is_kept = wanted(&String::from_utf8_lossy(&name));
        }
        if is_kept {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// A message's header, without the empty line.
pub(crate) fn header(mime: &[u8]) -> &[u8] {
    let end = memchr::memmem::find(mime, b"\r\n\r\n").map_or(mime.len(), |end| end + 2);
    &mime[..end]
}
