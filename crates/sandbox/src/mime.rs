//! A message's structure, and its header fields, decoded.

use mail_parser::{HeaderName, Message, MessageParser};

use mailgate_types::encoded_words::decoded;

/// Parts of one message that may be messages themselves.
const ENCLOSED: usize = 100;

/// A message with its parts; `None` if it can't be parsed, or encloses more messages than anybody sends: the parser
/// descends into them without limit, and drops them recursively, which would overflow the stack.
pub(crate) fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    if encloses_too_much(bytes) {
        return None;
    }
    MessageParser::default().parse(bytes)
}

/// Whether more messages could be enclosed than the limit, or some in an encoding (against RFC 2046 §5.2.1), which
/// hides how many are in them. The parser finds header fields anywhere after a delimiter, so all of the text counts.
fn encloses_too_much(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    let name = memchr::memmem::Finder::new("content-type");
    let (mut enclosed, mut position) = (0, 0);
    while let Some(start) = name.find(&lower[position..]) {
        let start = position + start;
        let field = field_at(&lower, start);
        position = start + field.len();
        let names = name.find_iter(field).count();
        if !names_message(field, names > 1) {
            continue;
        }
        enclosed += names;
        let head = block_around(&lower, start);
        let is_encoded = ["base64", "quoted-printable"]
            .iter()
            .any(|encoding| memchr::memmem::find(head, encoding.as_bytes()).is_some());
        if is_encoded || enclosed > ENCLOSED {
            return true;
        }
    }
    false
}

/// Whether a Content-Type field, in lower case, could declare a message, or a digest of messages. Its parameters count
/// if it is unclear where they begin.
fn names_message(field: &[u8], is_unclear: bool) -> bool {
    let parameters = memchr::memchr(b';', field).unwrap_or(field.len());
    // A semicolon may be in a comment or in quotes.
    let kind = match memchr::memchr2(b'(', b'"', &field[..parameters]) {
        None if !is_unclear => &field[..parameters],
        _ => field,
    };
    let letters: Vec<u8> = (kind.iter().copied())
        .filter(u8::is_ascii_alphanumeric)
        .collect();
    ["messagerfc822", "messageglobal", "digest"]
        .iter()
        .any(|name| memchr::memmem::find(&letters, name.as_bytes()).is_some())
}

/// The field that begins here, with its folds.
fn field_at(text: &[u8], start: usize) -> &[u8] {
    let rest = &text[start..];
    let end = memchr::memchr_iter(b'\n', rest)
        .find(|end| !matches!(rest.get(end + 1), Some(b' ' | b'\t')));
    &rest[..end.unwrap_or(rest.len())]
}

/// The lines around a place, between empty ones.
fn block_around(text: &[u8], place: usize) -> &[u8] {
    let is_empty =
        |end: &usize| text[end + 1..].starts_with(b"\n") || text[end + 1..].starts_with(b"\r\n");
    let start = memchr::memrchr_iter(b'\n', &text[..place]).find(is_empty);
    let end = memchr::memchr_iter(b'\n', &text[place..])
        .map(|end| place + end)
        .find(is_empty);
    &text[start.unwrap_or(0)..end.unwrap_or(text.len())]
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn encloses(heads: &str, levels: usize) -> String {
        format!(
            "Subject: s\r\n{}Subject: inmost\r\n\r\nHi\r\n",
            heads.repeat(levels)
        )
    }

    #[test]
    fn enclosed_messages_are_parsed_up_to_a_limit() {
        for head in [
            "Content-Type: message/rfc822\r\n\r\n",
            "CONTENT-TYPE : Message/\r\n Global; x=y\r\n\r\n",
            "Content-Type: (a;b) message/rfc822\n\n",
        ] {
            assert!(parse(encloses(head, 3).as_bytes()).is_some(), "{head}");
            assert!(parse(encloses(head, 60_000).as_bytes()).is_none(), "{head}");
        }
        let digest = "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\n";
        assert!(parse(encloses(digest, 3).as_bytes()).is_some());
        assert!(parse(encloses(digest, 60_000).as_bytes()).is_none());
        let hidden = "Content-Type: multipart/mixed; boundary=b\r\n\r\ncontent-type: x;--bContent-Type: message/rfc822\r\n\r\n";
        assert!(parse(encloses(hidden, 60_000).as_bytes()).is_none());
        let plain = "Content-Type: text/plain; name=\"message/rfc822\"\r\n\r\n";
        assert!(parse(encloses(plain, 1_000).as_bytes()).is_some());
    }

    #[test]
    fn enclosed_messages_in_an_encoding_arent_parsed() {
        for encoding in ["base64", "Quoted-Printable"] {
            for head in [
                format!(
                    "Content-Transfer-Encoding: {encoding}\r\nContent-Type: message/rfc822\r\n\r\n"
                ),
                format!(
                    "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
                ),
            ] {
                assert!(parse(encloses(&head, 1).as_bytes()).is_none(), "{head}");
            }
        }
        // Other parts may be encoded.
        let file = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Transfer-Encoding: base64\r\n\r\n\
            aGk=\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n";
        assert!(parse(encloses(file, 1).as_bytes()).is_some());
    }
}
