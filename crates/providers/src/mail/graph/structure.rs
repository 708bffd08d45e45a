//! A message's parts by their delimiter lines (RFC 2046 §5.1.1), rewritten so that the parser finds the same ones: it
//! accepts a delimiter anywhere in a line, doesn't let an outer one end the inner parts, and reads only flawless
//! encodings and base64.
//!
//! Messages that the message encloses (§5.2.1) are taken out, each as one file: the parser descends into them without
//! limit, and its result is dropped recursively, so that a few megabytes would overflow the stack and abort the process.

use std::ops::Range;

use mail_parser::{Encoding, MessagePart, MimeHeaders};

use super::transfer_encoding::{self, not_decoded};
use crate::mail::verdict::Failure;
use mailgate_types::hex::hex;
use mailgate_types::message_parser::message_parser;

/// Maximum nesting of multiparts.
const DEEPEST: usize = 100;

/// A message that the parser reads correctly, and the messages that were taken out of it.
pub(super) struct Opened<'a> {
    pub(super) mime: Vec<u8>,
    pub(super) enclosed: Vec<Enclosed<'a>>,
    /// Begins the names of the parts that stand for those, and occurs in no message.
    mark: String,
}

impl Opened<'_> {
    /// The number of the enclosed message that a part stands for.
    pub(super) fn number(&self, part: &MessagePart<'_>) -> Option<usize> {
        let name = part.content_type()?.attribute("name")?;
        let number = name.strip_prefix(&self.mark)?.strip_prefix('-')?;
        number.parse().ok()
    }
}

/// An enclosed message.
#[derive(Debug)]
pub(super) struct Enclosed<'a> {
    /// The headers of the part that contains it.
    pub(super) headers: MessagePart<'a>,
    /// The message itself.
    pub(super) content: Vec<u8>,
}

/// A multipart that is still open.
struct Open {
    boundary: Vec<u8>,
    /// The delimiter that replaces it.
    unmistakable: String,
    has_parts: bool,
    /// Its parts are messages unless they say otherwise (RFC 2046 §5.1.5).
    is_digest: bool,
}

/// Where the next line is.
enum Within {
    /// Within a part's headers: where they began.
    Headers(usize),
    /// Within an enclosed message: its part's headers, and where its body began.
    Message { headers: Range<usize>, body: usize },
    /// Within an encoded part: where its body began.
    Encoded(Encoding, usize),
    /// In another part's body, or between parts.
    Body,
}

/// Rewrites a message.
///
/// # Errors
///
/// A permanent failure if it is unclear what belongs to which part, or a part can't be decoded.
pub(super) fn open(mime: &[u8]) -> Result<Opened<'_>, Failure> {
    let mut writer = Writer::new(mime);
    let mut position = 0;
    while position < mime.len() {
        let rest = &mime[position..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = position..position + length;
        position = line.end;
        writer.line(line)?;
    }
    writer.end()
}

struct Writer<'a> {
    mime: &'a [u8],
    written: Vec<u8>,
    /// Up to here the message is written, or left out.
    done: usize,
    enclosed: Vec<Enclosed<'a>>,
    open: Vec<Open>,
    place: Within,
    /// Occurs in no message.
    mark: String,
    multiparts: usize,
}

impl<'a> Writer<'a> {
    fn new(mime: &'a [u8]) -> Self {
        Self {
            mime,
            written: Vec::with_capacity(mime.len() + 1024),
            done: 0,
            enclosed: Vec::new(),
            open: Vec::new(),
            place: Within::Headers(0),
            mark: hex(&rand::random::<[u8; 16]>()),
            multiparts: 0,
        }
    }

    /// Replaces a range of the message by `with`.
    fn replace(&mut self, range: Range<usize>, with: &[u8]) {
        self.written
            .extend_from_slice(&self.mime[self.done..range.start]);
        self.written.extend_from_slice(with);
        self.done = range.end;
    }

    fn line(&mut self, line: Range<usize>) -> Result<(), Failure> {
        let text = &self.mime[line.clone()];
        if let Some((level, is_end)) = delimiter(text, &self.open) {
            self.end_part(line.start)?;
            let closed = self.open.split_off(if is_end { level } else { level + 1 });
            let mut delimiter = closing(&closed)?;
            self.place = if is_end {
                Within::Body
            } else {
                let open = &mut self.open[level];
                open.has_parts = true;
                delimiter = delimiter + "--" + &open.unmistakable + "\r\n";
                Within::Headers(line.end)
            };
            self.replace(line, delimiter.as_bytes());
        } else if let Within::Headers(start) = self.place
            // A line of blanks continues the field before it (RFC 5322 §4.2).
            && (matches!(text, b"\r\n" | b"\n")
                || start == line.start && text.trim_ascii_end().is_empty())
        {
            self.headers(start..line.start, line)?;
        }
        Ok(())
    }

    /// The end of the message, where multiparts may still be open.
    fn end(mut self) -> Result<Opened<'a>, Failure> {
        let end = self.mime.len();
        self.end_part(end)?;
        self.replace(end..end, b"");
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.written.extend_from_slice(b"\r\n");
            self.written.extend_from_slice(closing(&open)?.as_bytes());
        }
        Ok(Opened {
            mime: self.written,
            enclosed: self.enclosed,
            mark: self.mark,
        })
    }

    /// Ends the part before a delimiter, or the end of the message.
    fn end_part(&mut self, end: usize) -> Result<(), Failure> {
        if let Within::Headers(start) = self.place {
            // There is no empty line, and no body.
            self.headers(start..end, end..end)?;
        }
        // The line break before the delimiter belongs to it.
        let before = &self.mime[..end];
        let is_delimiter = end < self.mime.len();
        let body_end = (before.strip_suffix(b"\r\n"))
            .filter(|_| is_delimiter)
            .map_or(end, <[u8]>::len);
        match std::mem::replace(&mut self.place, Within::Body) {
            Within::Message { headers, body } => {
                self.take_out(headers, body..body.max(body_end))?;
            }
            Within::Encoded(encoding, body) => {
                let body = body..body.max(body_end);
                let plain = transfer_encoding::plain(encoding, &self.mime[body.clone()])?;
                if let Some(content) = plain {
                    self.replace(body, &content);
                }
            }
            Within::Headers(_) | Within::Body => {}
        }
        Ok(())
    }

    fn take_out(&mut self, headers: Range<usize>, body: Range<usize>) -> Result<(), Failure> {
        let mime = self.mime;
        let mut stand_in = Vec::new();
        if headers.start == 0 {
            keep_own_headers(&mime[headers.clone()], &mut stand_in);
        }
        let (mark, number) = (&self.mark, self.enclosed.len());
        stand_in.extend_from_slice(
            format!("Content-Type: application/octet-stream; name={mark}-{number}\r\n\r\n")
                .as_bytes(),
        );
        self.replace(headers.start..body.end, &stand_in);
        self.enclosed
            .push(Enclosed::of(&mime[headers], &mime[body])?);
        Ok(())
    }

    /// A part's headers, and the empty line that ends them.
    fn headers(&mut self, fields: Range<usize>, empty: Range<usize>) -> Result<(), Failure> {
        let is_digest = self.open.last().is_some_and(|open| open.is_digest);
        let part = parsed(&self.mime[fields.start..empty.end]);
        if is_message(&part, is_digest) {
            self.place = Within::Message {
                headers: fields.start..empty.end,
                body: empty.end,
            };
            return Ok(());
        }
        self.place = Within::Body;
        let kind = match multipart(&part) {
            Some(multipart) => Some(self.open(multipart)?),
            None => None,
        };
        let (mut kinds, mut encodings) = (0, 0);
        for field in fields_in(self.mime, fields) {
            let text = &self.mime[field.clone()];
            if is_named(text, b"content-type") {
                kinds += 1;
                if let Some(kind) = &kind {
                    self.replace(field, kind.as_bytes());
                } else if names_message(text) {
                    return Err(unclear());
                }
            } else if is_named(text, b"content-transfer-encoding") {
                encodings += 1;
                let encoding = match kind {
                    Some(_) => Encoding::None,
                    None => transfer_encoding::declared(text)?,
                };
                self.place = Within::Encoded(encoding, empty.end);
                self.replace(field, transfer_encoding::field(encoding).as_bytes());
            }
        }
        // Readers differ in which one counts.
        if kinds > 1 || encodings > 1 || kinds == 0 && part.content_type().is_some() {
            return Err(unclear());
        }
        if !matches!(&self.mime[empty.clone()], b"\r\n" | b"\n") {
            let before = &self.mime[..empty.start];
            let is_broken = !before.is_empty() && !before.ends_with(b"\n");
            self.replace(empty, if is_broken { b"\r\n\r\n" } else { b"\r\n" });
        }
        Ok(())
    }

    /// Opens a multipart, and returns its Content-Type field.
    fn open(&mut self, multipart: Multipart) -> Result<String, Failure> {
        if self.open.len() == DEEPEST {
            return Err(unclear());
        }
        let unmistakable = format!("{}-{:08}", self.mark, self.multiparts);
        self.multiparts += 1;
        let is_digest = multipart.subtype == "digest";
        let subtype = if is_digest {
            "mixed"
        } else {
            &multipart.subtype
        };
        let field = format!("Content-Type: multipart/{subtype}; boundary=\"{unmistakable}\"\r\n");
        self.open.push(Open {
            boundary: multipart.boundary,
            unmistakable,
            has_parts: false,
            is_digest,
        });
        Ok(field)
    }
}

fn unclear() -> Failure {
    Failure::own(
        "5.6.0 The message can't be parsed: it is unclear where its parts, or the messages attached to it, end",
    )
}

/// The lines that close these multiparts, the innermost first.
fn closing(open: &[Open]) -> Result<String, Failure> {
    if open.iter().any(|open| !open.has_parts) {
        return Err(Failure::own(
            "5.6.0 The message can't be parsed: the boundary of a multipart occurs nowhere in it",
        ));
    }
    let lines = open.iter().rev();
    Ok(lines.fold(String::new(), |lines, open| {
        lines + "--" + &open.unmistakable + "--\r\n"
    }))
}

/// If the whole message is a single enclosed message, keeps its other headers.
fn keep_own_headers(headers: &[u8], kept: &mut Vec<u8>) {
    for field in fields_in(headers, 0..headers.len()) {
        let field = &headers[field];
        if !begins(field, b"content-") && !field.starts_with(b"\r\n") {
            kept.extend_from_slice(field);
        }
    }
}

impl<'a> Enclosed<'a> {
    fn of(headers: &'a [u8], body: &[u8]) -> Result<Self, Failure> {
        let mut encoding = Encoding::None;
        for field in fields_in(headers, 0..headers.len()) {
            if is_named(&headers[field.clone()], b"content-transfer-encoding") {
                encoding = transfer_encoding::declared(&headers[field])?;
            }
        }
        let plain = transfer_encoding::plain(encoding, body)?;
        let content = transfer_encoding::decoded(encoding, plain.as_deref().unwrap_or(body));
        Ok(Self {
            headers: parsed(headers),
            content: content.ok_or_else(not_decoded)?,
        })
    }
}

/// Whether a Content-Type field could be misread as declaring a message.
fn names_message(field: &[u8]) -> bool {
    let field = field.to_ascii_lowercase();
    let parameters = memchr::memchr(b';', &field).unwrap_or(field.len());
    // A semicolon may be in a comment or in quotes.
    let kind = match memchr::memchr2(b'(', b'"', &field[..parameters]) {
        Some(_) => &field[..],
        None => &field[..parameters],
    };
    ["message", "digest"]
        .iter()
        .any(|word| memchr::memmem::find(kind, word.as_bytes()).is_some())
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

/// The parameters of a multipart's Content-Type.
struct Multipart {
    subtype: String,
    boundary: Vec<u8>,
}

fn multipart(part: &MessagePart<'_>) -> Option<Multipart> {
    let kind = part.content_type()?;
    let is_multipart = kind.ctype().eq_ignore_ascii_case("multipart");
    let boundary = kind.attribute("boundary").filter(|_| is_multipart)?;
    let is_of_word = |letter: &char| letter.is_ascii_alphanumeric() || "-+.".contains(*letter);
    let subtype = kind.subtype().unwrap_or_default().to_ascii_lowercase();
    Some(Multipart {
        subtype: subtype.chars().filter(is_of_word).collect(),
        boundary: boundary.as_bytes().to_vec(),
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
    let message = message_parser().parse_headers(headers);
    message
        .and_then(|mut message| message.parts.pop())
        .unwrap_or_default()
}

/// The header fields within a range, each with its continuation lines.
fn fields_in(mime: &[u8], range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let rest = &mime[start..range.end];
        let field = start..start + field_length(rest);
        start = field.end;
        (!rest.is_empty()).then_some(field)
    })
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
    begins(field, name) && {
        let behind = field.trim_ascii_start().get(name.len()..);
        behind.is_some_and(|behind| behind.trim_ascii_start().starts_with(b":"))
    }
}

fn begins(field: &[u8], name: &[u8]) -> bool {
    // The parser doesn't treat leading blanks as a continuation if no field precedes them.
    let field = field.trim_ascii_start();
    field
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}
