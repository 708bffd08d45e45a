//! Messages that a message encloses (RFC 2046 §5.2.1): extracted before parsing, each as one file.
//!
//! The parser descends into them without limit, and its result is dropped recursively: a message of a few megabytes
//! would overflow the stack and abort the process.

use std::borrow::Cow;
use std::ops::Range;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{MessageParser, MessagePart, MimeHeaders};

use crate::providers::mail::verdict::Failure;

/// Names the placeholder part of an enclosed message; its number follows.
const PLACE: &str = "mailgate-enclosed-";

/// Maximum nesting of multiparts; deeper ones stay text.
const DEEPEST: usize = 100;

/// A message without enclosed messages, and the messages that were extracted.
pub(super) struct Opened<'a> {
    pub(super) mime: Cow<'a, [u8]>,
    pub(super) enclosed: Vec<Enclosed<'a>>,
}

/// An enclosed message.
#[derive(Debug)]
pub(super) struct Enclosed<'a> {
    /// The headers of the part that contains it.
    pub(super) headers: MessagePart<'a>,
    /// The message itself.
    pub(super) content: Vec<u8>,
}

/// What the parser must not see.
enum Found {
    /// A part that is a message: its headers and its body.
    Message {
        headers: Range<usize>,
        body: Range<usize>,
    },
    /// The word that makes a multipart a digest.
    Digest(Range<usize>),
}

/// A multipart that is still open.
struct Open {
    boundary: Vec<u8>,
    /// Its parts are messages unless they say otherwise (RFC 2046 §5.1.5).
    is_digest: bool,
}

/// Where the next line is.
enum Within {
    /// Within a part's headers, which began here.
    Headers(usize),
    /// Within an enclosed message, whose part has these headers, and whose body began here.
    Message { headers: Range<usize>, body: usize },
    /// In another part's body, or between parts.
    Body,
}

/// Extracts the enclosed messages.
///
/// # Errors
///
/// A permanent failure if the parser might still find one.
pub(super) fn open(mime: &[u8]) -> Result<Opened<'_>, Failure> {
    if !may_enclose(mime) {
        return Ok(Opened {
            mime: Cow::Borrowed(mime),
            enclosed: Vec::new(),
        });
    }
    let mut opened = Vec::with_capacity(mime.len());
    let (mut enclosed, mut copied) = (Vec::new(), 0);
    for found in find(mime) {
        match found {
            Found::Digest(word) => {
                opened.extend_from_slice(&mime[copied..word.start]);
                opened.extend_from_slice(b"mixed");
                copied = word.end;
            }
            Found::Message { headers, body } => {
                opened.extend_from_slice(&mime[copied..headers.start]);
                copied = body.end;
                if headers.start == 0 {
                    keep_own_headers(&mime[headers.clone()], &mut opened);
                }
                let name = format!("{PLACE}{}", enclosed.len());
                let stand_in =
                    format!("Content-Type: application/octet-stream; name={name}\r\n\r\n");
                opened.extend_from_slice(stand_in.as_bytes());
                enclosed.push(Enclosed::of(&mime[headers], &mime[body]));
            }
        }
    }
    opened.extend_from_slice(&mime[copied..]);
    if may_enclose(&opened) {
        return Err(Failure::own(
            "5.6.0 The message can't be parsed: it is unclear where the messages attached to it end",
        ));
    }
    Ok(Opened {
        mime: Cow::Owned(opened),
        enclosed,
    })
}

/// If the whole message is one, keeps its other headers.
fn keep_own_headers(headers: &[u8], opened: &mut Vec<u8>) {
    let mut rest = headers;
    while !rest.is_empty() && !rest.starts_with(b"\r\n") {
        let (field, behind) = rest.split_at(field_length(rest));
        if !is_named(field, b"content-") {
            opened.extend_from_slice(field);
        }
        rest = behind;
    }
}

/// The number of the enclosed message that a part stands for.
pub(super) fn number(part: &MessagePart<'_>) -> Option<usize> {
    let name = part.content_type()?.attribute("name")?;
    name.strip_prefix(PLACE)?.parse().ok()
}

impl<'a> Enclosed<'a> {
    fn of(headers: &'a [u8], body: &[u8]) -> Self {
        let headers = parsed(headers);
        let decoded = match headers.content_transfer_encoding() {
            Some(encoding) if encoding.eq_ignore_ascii_case("base64") => base64_decode(body),
            Some(encoding) if encoding.eq_ignore_ascii_case("quoted-printable") => {
                quoted_printable_decode(body)
            }
            _ => None,
        };
        Self {
            content: decoded.unwrap_or_else(|| body.to_vec()),
            headers,
        }
    }
}

/// Whether any line declares a part to be a message, or a multipart to consist of messages.
fn may_enclose(mime: &[u8]) -> bool {
    let mut rest = mime;
    while !rest.is_empty() {
        if is_named(rest.trim_ascii_start(), b"content-type") {
            let field = &rest[..field_length(rest)];
            if kind_word(field, &[b"message", b"digest"]).is_some() {
                return true;
            }
        }
        let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        rest = &rest[line..];
    }
    false
}

/// The position of one of these words in the type of a Content-Type field.
fn kind_word(field: &[u8], words: &[&[u8]]) -> Option<Range<usize>> {
    let field = field.to_ascii_lowercase();
    let parameters = memchr::memchr(b';', &field).unwrap_or(field.len());
    // A semicolon may be in a comment or in quotes.
    let kind = match memchr::memchr2(b'(', b'"', &field[..parameters]) {
        Some(_) => &field[..],
        None => &field[..parameters],
    };
    words.iter().find_map(|word| {
        let start = memchr::memmem::find(kind, word)?;
        Some(start..start + word.len())
    })
}

/// The enclosed messages and the digests, in order, without those inside an enclosed message.
fn find(mime: &[u8]) -> Vec<Found> {
    let (mut found, mut open) = (Vec::new(), Vec::<Open>::new());
    let (mut place, mut position) = (Within::Headers(0), 0);
    while position < mime.len() {
        let rest = &mime[position..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = &rest[..length];
        if let Some((level, is_end)) = delimiter(line, &open) {
            if let Within::Message { headers, body } = place {
                // The line break before the delimiter belongs to it.
                let before = &mime[..position];
                let end = before.strip_suffix(b"\r\n").map_or(position, <[u8]>::len);
                let body = body..body.max(end);
                found.push(Found::Message { headers, body });
            }
            open.truncate(if is_end { level } else { level + 1 });
            place = if is_end {
                Within::Body
            } else {
                Within::Headers(position + length)
            };
        } else if let Within::Headers(start) = place
            && line.trim_ascii_end().is_empty()
        {
            let headers = start..position + length;
            let is_digest = open.last().is_some_and(|open| open.is_digest);
            let part = parsed(&mime[headers.clone()]);
            if is_message(&part, is_digest) {
                let body = headers.end;
                place = Within::Message { headers, body };
            } else {
                open.extend(multipart(&part).filter(|_| open.len() < DEEPEST));
                found.extend(digests(mime, headers).map(Found::Digest));
                place = Within::Body;
            }
        }
        position += length;
    }
    if let Within::Message { headers, body } = place {
        let body = body..mime.len();
        found.push(Found::Message { headers, body });
    }
    found
}

fn is_message(part: &MessagePart<'_>, is_digest: bool) -> bool {
    let Some(kind) = part.content_type() else {
        return is_digest;
    };
    let subtype = kind.subtype().unwrap_or_default();
    kind.ctype().eq_ignore_ascii_case("message")
        && ["rfc822", "global"]
            .iter()
            .any(|it| subtype.eq_ignore_ascii_case(it))
}

fn multipart(part: &MessagePart<'_>) -> Option<Open> {
    let kind = part.content_type()?;
    let is_multipart = kind.ctype().eq_ignore_ascii_case("multipart");
    let boundary = kind.attribute("boundary").filter(|_| is_multipart)?;
    let subtype = kind.subtype().unwrap_or_default();
    Some(Open {
        boundary: boundary.as_bytes().to_vec(),
        is_digest: subtype.eq_ignore_ascii_case("digest"),
    })
}

/// The positions where a part's headers declare a digest.
fn digests(mime: &[u8], headers: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = headers.start;
    std::iter::from_fn(move || {
        while start < headers.end {
            let field = start..start + field_length(&mime[start..headers.end]);
            start = field.end;
            let field_bytes = &mime[field.clone()];
            if is_named(field_bytes, b"content-type")
                && let Some(word) = kind_word(field_bytes, &[b"digest"])
            {
                return Some(field.start + word.start..field.start + word.end);
            }
        }
        None
    })
}

/// Which of the open multiparts a line delimits, and whether it closes it.
fn delimiter(line: &[u8], open: &[Open]) -> Option<(usize, bool)> {
    let line = line.strip_prefix(b"--")?.trim_ascii_end();
    open.iter().enumerate().rev().find_map(|(level, open)| {
        match line.strip_prefix(open.boundary.as_slice())? {
            b"" => Some((level, false)),
            b"--" => Some((level, true)),
            _ => None,
        }
    })
}

fn parsed(headers: &[u8]) -> MessagePart<'_> {
    let message = MessageParser::new().parse_headers(headers);
    message
        .and_then(|mut message| message.parts.pop())
        .unwrap_or_default()
}

/// Length of the first header field with its continuation lines, in octets.
fn field_length(rest: &[u8]) -> usize {
    let mut length = 0;
    loop {
        let end = memchr::memchr(b'\n', &rest[length..]);
        length = end.map_or(rest.len(), |end| length + end + 1);
        if !matches!(rest.get(length), Some(b' ' | b'\t')) {
            return length;
        }
    }
}

fn is_named(field: &[u8], name: &[u8]) -> bool {
    field
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}
