//! A message's structure, and its header fields, decoded.

use mail_parser::{Encoding, HeaderName, Message, MessageParser, MessagePart};

use mailgate_types::encoded_words::decoded;

/// Stands for the slash in the type of an enclosed message.
const SLASH: u8 = 0x1f;

/// A message as the parser may read it. It descends into enclosed messages without limit, and drops them recursively,
/// so that many would overflow the stack: here their type has no subtype, so that each is a file as any other.
pub(crate) struct Readable<'a> {
    original: &'a [u8],
    changed: Option<Vec<u8>>,
}

impl<'a> Readable<'a> {
    pub(crate) fn new(original: &'a [u8]) -> Self {
        let mut changed: Option<Vec<u8>> = None;
        let mut current = 0..0;
        let mut is_unclear = false;
        for colon in memchr::memchr_iter(b':', original) {
            if !follows_content_type(&original[..colon]) {
                continue;
            }
            // A second one within a field may be where a part begins, so that all of the field counts; once is enough.
            let is_within = current.contains(&colon);
            if is_within && is_unclear {
                continue;
            }
            if !is_within {
                current = colon..colon + field_at(original, colon).len();
            }
            is_unclear = is_within;
            let field = &original[current.clone()];
            if names_message(field, is_unclear) {
                let copy = changed.get_or_insert_with(|| original.to_vec());
                let slashes = memchr::memchr_iter(b'/', field);
                slashes.for_each(|slash| copy[current.start + slash] = SLASH);
            }
        }
        Self { original, changed }
    }

    /// `None` if it can't be parsed.
    pub(crate) fn parse(&self) -> Option<Message<'_>> {
        let bytes = self.changed.as_deref().unwrap_or(self.original);
        MessageParser::default().parse(bytes)
    }

    /// A part's decoded content.
    pub(crate) fn contents(&self, part: &MessagePart<'_>) -> Vec<u8> {
        let range = part.offset_body as usize..part.offset_end as usize;
        match self.original.get(range) {
            Some(content) if part.encoding == Encoding::None => content.to_vec(),
            _ => part.contents().to_vec(),
        }
    }
}

/// A text of a parsed message as it was before.
pub(crate) fn restored(text: &str) -> String {
    text.replace(char::from(SLASH), "/")
}

/// The parser ignores white space within names, and finds fields anywhere after a delimiter.
fn follows_content_type(before: &[u8]) -> bool {
    let mut letters = (before.iter().rev()).filter(|byte| !byte.is_ascii_whitespace());
    (b"content-type".iter().rev())
        .all(|expected| (letters.next()).is_some_and(|byte| byte.eq_ignore_ascii_case(expected)))
}

/// Whether a Content-Type field could declare a message, or a digest of messages, to anybody.
fn names_message(field: &[u8], is_unclear: bool) -> bool {
    let parameters = memchr::memchr(b';', field).unwrap_or(field.len());
    // A semicolon may be in a comment or in quotes; an encoded word may be anything.
    let is_plain = !is_unclear && !(field[..parameters].iter()).any(|byte| b"(\"=".contains(byte));
    let kind = if is_plain {
        &field[..parameters]
    } else {
        field
    };
    let letters = || {
        kind.iter()
            .filter(|byte| !byte.is_ascii_whitespace())
            .map(u8::to_ascii_lowercase)
    };
    let mut depth = 0_usize;
    let without_comments: Vec<u8> = letters()
        .filter(|byte| {
            depth += usize::from(*byte == b'(');
            let is_outside = depth == 0;
            depth = depth.saturating_sub(usize::from(*byte == b')'));
            is_outside
        })
        .collect();
    let whole: Vec<u8> = letters().collect();
    [whole, without_comments].iter().any(|text| {
        ["message", "digest", "=?"]
            .iter()
            .any(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
    })
}

/// The rest of the field that begins here, with its folds.
fn field_at(text: &[u8], start: usize) -> &[u8] {
    let rest = &text[start..];
    let end = memchr::memchr_iter(b'\n', rest)
        .find(|end| !matches!(rest.get(end + 1), Some(b' ' | b'\t')));
    &rest[..end.unwrap_or(rest.len())]
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
    #![expect(clippy::unwrap_used, reason = "tests")]

    use base64::Engine as _;
    use mail_parser::PartType;
    use proptest::prelude::*;

    use super::*;

    fn encloses(heads: &str, levels: usize) -> String {
        format!(
            "Subject: s\r\n{}Subject: inmost\r\n\r\nHi\r\n",
            heads.repeat(levels)
        )
    }

    fn parts(mail: &[u8]) -> Vec<String> {
        let readable = Readable::new(mail);
        let message = readable.parse();
        let parts = message.iter().flat_map(|message| &message.parts);
        parts
            .map(|part| {
                assert!(!matches!(part.body, PartType::Message(_)));
                String::from_utf8_lossy(&readable.contents(part)).into_owned()
            })
            .collect()
    }

    #[test]
    fn enclosed_messages_are_files_however_many() {
        for head in [
            "Content-Type: message/rfc822\r\n\r\n",
            "CONTENT-TYPE : Message/\r\n Global; x=y\r\n\r\n",
            "Content-Type: (a;b) message/rfc822\n\n",
            "Content-Type: message(x)/rfc822\r\n\r\n",
            "Content-Type: message/(x(y)z)rfc822\r\n\r\n",
            "Content-Type: mess(x)age/rfc(\\)822\r\n\r\n",
            "Content -Type: message/rfc822\r\n\r\n",
            "C on\tt ent-Type \t: message/rfc822\r\n\r\n",
            "Content-Type: =?utf-8?q?message?=/rfc822\r\n\r\n",
            "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\n",
            "Content-Type: multipart/mixed; boundary=b\r\n\r\ncontent-type: x;--bContent-Type: message/rfc822\r\n\r\n",
            "Content-Type: multipart/mixed; boundary=b\r\n\r\ncontent-type: x;--bContent-Type: y;--bContent-Type: message/rfc822\r\n\r\n",
        ] {
            for first in ["", "Content-Type: message/rfc822\r\n\r\n"] {
                for levels in [1, 3, 60_000] {
                    let mail = first.to_owned() + &encloses(head, levels);
                    assert!(!parts(mail.as_bytes()).is_empty(), "{head}");
                }
            }
        }
        let inner = "Content-Type: message/rfc822\r\n\r\nSubject: inmost\r\n\r\nHi\r\n";
        assert_eq!(
            parts(encloses("Content-Type: message/rfc822\r\n\r\n", 2).as_bytes()),
            [inner]
        );
    }

    #[test]
    fn enclosed_messages_in_an_encoding_are_files_too() {
        let deep = base64::engine::general_purpose::STANDARD
            .encode(encloses("Content-Type: message/rfc822\r\n\r\n", 60_000));
        for head in [
            "Content-Transfer-Encoding: base64\r\nContent-Type: message/rfc822\r\n\r\n",
            "Content-Transfer-Encoding: =?utf-8?b?YmFzZTY0?=\r\nContent-Type: message/rfc822\r\n\r\n",
            "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        ] {
            parts(format!("{head}{deep}\r\n--b--\r\n").as_bytes());
        }
    }

    #[test]
    fn a_long_line_takes_no_longer_than_its_length() {
        // Were each read to the line's end, this would take minutes.
        for text in ["content-type:", "content-type:message;", "content-type:("] {
            assert!(!parts(text.repeat(500_000).as_bytes()).is_empty());
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for mail in [
            encloses("Content-Type: text/plain; name=\"message/rfc822\"\r\n", 1),
            encloses(
                "Content-Type: text/plain; charset=us-ascii (Plain text)\r\n",
                1,
            ),
        ] {
            let readable = Readable::new(mail.as_bytes());
            assert!(readable.changed.is_none(), "{mail}");
            let message = readable.parse().unwrap();
            assert!(matches!(message.parts[0].body, PartType::Text(_)));
        }
        assert_eq!(
            restored("Content-Type: message\u{1f}rfc822"),
            "Content-Type: message/rfc822"
        );
    }

    proptest! {
        #[test]
        fn no_message_is_found_in_another(mail in "((C|c)ontent ?-Type ?:|message|/|rfc822|global|digest|multipart|; boundary=b|--b|\r\n|\n|[ ()\"=?;a]){1,60}") {
            parts(mail.as_bytes());
        }
    }
}
