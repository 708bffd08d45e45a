//! A message's parts by their delimiter lines (RFC 2046 §5.1.1), written anew so that the parser finds the same ones: it
//! takes a delimiter anywhere in a line for one, doesn't see that an outer one ends what is within it, and reads only
//! encodings and base64 without a fault.
//!
//! Messages that the message encloses (§5.2.1) are taken out, each as one file: the parser descends into them without
//! limit, and its result is dropped recursively, so that a few megabytes would overflow the stack and abort the process.

use std::ops::Range;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{MessagePart, MimeHeaders};

use crate::providers::mail::verdict::Failure;
use mailgate_types::hex::hex;
use mailgate_types::message_parser::message_parser;

/// Maximum nesting of multiparts.
const DEEPEST: usize = 100;

const BASE64: &str = "base64";

/// A message that the parser reads right, and the messages that were taken out of it.
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
    /// The one that is written in its place.
    unmistakable: String,
    has_parts: bool,
    /// Its parts are messages unless they say otherwise (RFC 2046 §5.1.5).
    is_digest: bool,
}

/// Where the next line is.
enum Within {
    /// Within a part's headers, which began here.
    Headers(usize),
    /// Within an enclosed message, whose part has these headers, and whose body began here.
    Message { headers: Range<usize>, body: usize },
    /// Within a part in base64, whose body began here.
    Base64(usize),
    /// Within one in quoted-printable.
    QuotedPrintable(usize),
    /// In another part's body, or between parts.
    Body,
}

/// Writes a message anew.
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

    /// Writes `with` in place of what is there in the message.
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
            let inner = self.open.split_off(level + 1);
            let mut delimiter = closing(&inner)?;
            delimiter.push_str("--");
            delimiter.push_str(&self.open[level].unmistakable);
            self.open[level].has_parts |= !is_end;
            if is_end {
                delimiter = closing(&inner)? + &closing(&self.open.split_off(level))?;
            }
            delimiter.push_str("\r\n");
            self.replace(line.clone(), delimiter.as_bytes());
            self.place = if is_end {
                Within::Body
            } else {
                Within::Headers(line.end)
            };
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
            Within::Base64(body) => {
                let body = body..body.max(body_end);
                if let Some(content) = plain_base64(&self.mime[body.clone()])? {
                    self.replace(body, &content);
                }
            }
            Within::QuotedPrintable(body) => {
                let body = body..body.max(body_end);
                if let Some(content) = plain_quoted_printable(&self.mime[body.clone()]) {
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
        let mut start = fields.start;
        while start < fields.end {
            let field = start..start + field_length(&self.mime[start..fields.end]);
            start = field.end;
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
                let encoding = encoding(text)?.filter(|_| kind.is_none());
                match encoding {
                    Some(BASE64) => self.place = Within::Base64(empty.end),
                    Some(_) => self.place = Within::QuotedPrintable(empty.end),
                    None => {}
                }
                let written =
                    encoding.map(|encoding| format!("Content-Transfer-Encoding: {encoding}\r\n"));
                self.replace(field, written.unwrap_or_default().as_bytes());
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

/// Base64 without foreign characters, which are to be ignored (RFC 2045 §6.8), and with all of its padding; `None` if it
/// is so already.
fn plain_base64(content: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let is_letter = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/');
    let (mut letters, mut padding, mut is_plain) = (0_usize, 0_usize, true);
    for octet in content {
        match octet {
            b'\r' | b'\n' => {}
            b'=' => padding += 1,
            // Something else begins: nobody knows what.
            _ if is_letter(octet) && padding > 0 => return Err(not_decoded()),
            _ if is_letter(octet) => letters += 1,
            _ => is_plain = false,
        }
    }
    let wanted = match letters % 4 {
        1 => return Err(not_decoded()),
        over => (4 - over) % 4,
    };
    if is_plain && padding == wanted {
        return Ok(None);
    }
    let mut plain: Vec<u8> = content.iter().copied().filter(is_letter).collect();
    plain.resize(letters + wanted, b'=');
    Ok(Some(plain))
}

/// Quoted-printable whose every `=` is followed by what may follow it (RFC 2045 §6.7); `None` if it is so already. One
/// that stands by itself is a letter; and behind a soft break at the end there is nothing: of it, the parser would take
/// away what is before.
fn plain_quoted_printable(content: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut done) = (Vec::new(), 0);
    for equals in memchr::memchr_iter(b'=', content) {
        let rest = &content[equals + 1..];
        let blanks = rest
            .iter()
            .take_while(|octet| matches!(octet, b' ' | b'\t'))
            .count();
        let (end, with): (usize, &[u8]) = match &rest[blanks..] {
            [] => (content.len(), b""),
            [b'\r', b'\n', ..] | [b'\n', ..] if blanks > 0 => (equals + 1 + blanks, b"="),
            [b'\r', b'\n', ..] | [b'\n', ..] => continue,
            _ if matches!(rest, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) => {
                continue;
            }
            _ => (equals + 1, b"=3D"),
        };
        let before = &content[done..equals];
        // Blanks that end a line are none.
        let (before, with): (_, &[u8]) = match before.split_last() {
            Some((b' ', others)) if with.is_empty() => (others, b"=20"),
            Some((b'\t', others)) if with.is_empty() => (others, b"=09"),
            _ => (before, with),
        };
        plain.extend_from_slice(before);
        plain.extend_from_slice(with);
        done = end;
    }
    (done > 0).then(|| {
        plain.extend_from_slice(&content[done..]);
        plain
    })
}

/// What says that it is encoded, and isn't.
pub(super) fn not_decoded() -> Failure {
    Failure::own(
        "5.6.0 The message can't be parsed: what it has in base64 or quoted-printable isn't",
    )
}

/// The encoding in a Content-Transfer-Encoding field; `None` if the content is as it is.
fn encoding(field: &[u8]) -> Result<Option<&'static str>, Failure> {
    let value = field.splitn(2, |octet| *octet == b':').nth(1);
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    // In quotes, with a comment or a parameter it is none (RFC 2045 §6.1), and others read it all the same.
    let word = value.split([';', '(']).next().unwrap_or_default();
    let word = word.replace('"', "").trim().to_ascii_lowercase();
    match word.as_str() {
        "base64" => Ok(Some(BASE64)),
        "quoted-printable" => Ok(Some("quoted-printable")),
        "" | "7bit" | "8bit" | "binary" => Ok(None),
        word => {
            let word: String = word
                .chars()
                .filter(char::is_ascii_graphic)
                .take(40)
                .collect();
            Err(Failure::own(format!(
                "5.6.3 The message is too large to go to Microsoft Graph whole, and in pieces what it has in the \
                 encoding {word} would not arrive as such: encode it in base64, or make the message smaller than 3 MB"
            )))
        }
    }
}

/// If the whole message is one, keeps its other headers.
fn keep_own_headers(headers: &[u8], kept: &mut Vec<u8>) {
    let mut rest = headers;
    while !rest.is_empty() && !rest.starts_with(b"\r\n") {
        let (field, behind) = rest.split_at(field_length(rest));
        if !begins(field, b"content-") {
            kept.extend_from_slice(field);
        }
        rest = behind;
    }
}

impl<'a> Enclosed<'a> {
    fn of(headers: &'a [u8], body: &[u8]) -> Result<Self, Failure> {
        let mut fields = headers;
        let mut declared = None;
        while !fields.is_empty() {
            let (field, behind) = fields.split_at(field_length(fields));
            fields = behind;
            if is_named(field, b"content-transfer-encoding") {
                declared = encoding(field)?;
            }
        }
        let content = match declared {
            Some(BASE64) => {
                let plain = plain_base64(body)?;
                base64_decode(plain.as_deref().unwrap_or(body)).ok_or_else(not_decoded)?
            }
            Some(_) => {
                let plain = plain_quoted_printable(body);
                quoted_printable_decode(plain.as_deref().unwrap_or(body)).ok_or_else(not_decoded)?
            }
            None => body.to_vec(),
        };
        Ok(Self {
            headers: parsed(headers),
            content,
        })
    }
}

/// Whether a Content-Type field that declares no message might be taken to.
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

/// What a multipart's Content-Type says.
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
    // The parser takes no blanks at the beginning for a continuation where there is nothing before.
    let field = field.trim_ascii_start();
    field
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}
