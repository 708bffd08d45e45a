//! The parts of a message (RFC 2046 §5.1), found in one pass over its lines. Enclosed messages are leaves: their own
//! parts aren't the sender's.

use crate::fields::{end_of_header, parameters, value};
use crate::lines::{Line, Lines};
use crate::text::decoded;

/// How deep multiparts may be nested; deeper ones are leaves.
const DEPTH: usize = 8;

/// Maximum number of parts; the last one includes the rest.
const PARTS: usize = 64;

/// A message, or a part of one.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// The lines of its header.
    pub(crate) header: &'a [u8],
    /// The body as sent.
    pub(crate) body: &'a [u8],
    /// `type/subtype`, in lower case; `text/plain` by default.
    pub(crate) media_type: String,
    parameters: Vec<(String, String)>,
}

impl<'a> Part<'a> {
    fn of(header: &'a [u8], body: &'a [u8]) -> Self {
        let (mut media_type, parameters) = value(header, "content-type")
            .map(|value| parameters(&value))
            .unwrap_or_default();
        if media_type.is_empty() {
            "text/plain".clone_into(&mut media_type);
        }
        Self {
            header,
            body,
            media_type,
            parameters,
        }
    }

    /// A parameter of its Content-Type.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut named = self.parameters.iter();
        named
            .find(|(its, _)| its == name)
            .map(|(_, value)| value.as_str())
    }

    /// The boundary, if it is a multipart.
    fn boundary(&self) -> Option<Vec<u8>> {
        let boundary = self
            .media_type
            .starts_with("multipart/")
            .then(|| self.parameter("boundary"))??;
        (!boundary.is_empty()).then(|| boundary.as_bytes().to_vec())
    }

    /// Its body, decoded.
    pub(crate) fn content(&self) -> Vec<u8> {
        let encoding = value(self.header, "content-transfer-encoding").unwrap_or_default();
        decoded(self.body, &encoding)
    }
}

/// A message: its own header, and its leaves in order.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) root: Part<'a>,
    /// The leaves of its multiparts; only the root if it isn't a multipart.
    pub(crate) leaves: Vec<Part<'a>>,
    /// The media types and report types of the multiparts, outermost first.
    pub(crate) multiparts: Vec<(String, String)>,
}

/// Splits a message.
pub(crate) fn split(raw: &[u8]) -> Message<'_> {
    let body = end_of_header(raw, 0, |_| false);
    let root = Part::of(&raw[..body], &raw[body..]);
    let mut message = Message {
        leaves: Vec::new(),
        multiparts: Vec::new(),
        root,
    };
    let Some(boundary) = message.root.boundary() else {
        message.leaves.push(Part::of(&raw[..body], &raw[body..]));
        return message;
    };
    note(&mut message.multiparts, &message.root);
    let mut open = vec![boundary];
    // The start of the current part's header and body; `None` between parts.
    let mut begun: Option<(usize, usize)> = None;
    let mut at = body;
    while let Some(line) = Lines::from(raw, at).next() {
        at = line.next;
        let Some((level, is_last)) = delimiter(line, &open) else {
            continue;
        };
        if let Some((header, body)) = begun.take() {
            message.leaves.push(Part::of(
                &raw[header..body],
                &raw[body..line.begin.max(body)],
            ));
        }
        open.truncate(if is_last { level } else { level + 1 });
        if is_last {
            if open.is_empty() {
                return message;
            }
            continue;
        }
        let header = line.next;
        let body = end_of_header(raw, header, |line| delimiter(line, &open).is_some());
        let part = Part::of(&raw[header..body], &[]);
        at = body;
        match part.boundary() {
            Some(boundary) if open.len() < DEPTH => {
                note(&mut message.multiparts, &part);
                open.push(boundary);
            }
            _ => begun = Some((header, body)),
        }
        if message.leaves.len() + 1 >= PARTS || message.multiparts.len() >= PARTS {
            break;
        }
    }
    if let Some((header, body)) = begun {
        message
            .leaves
            .push(Part::of(&raw[header..body], &raw[body..]));
    }
    message
}

fn note(multiparts: &mut Vec<(String, String)>, part: &Part<'_>) {
    let report = part.parameter("report-type").unwrap_or_default();
    multiparts.push((part.media_type.clone(), report.to_ascii_lowercase()));
}

/// The multipart whose delimiter this is, and whether it is the last one.
fn delimiter(line: Line<'_>, open: &[Vec<u8>]) -> Option<(usize, bool)> {
    let text = line.text.strip_prefix(b"--")?.trim_ascii_end();
    open.iter().enumerate().rev().find_map(|(level, boundary)| {
        match text.strip_prefix(boundary.as_slice())? {
            b"" => Some((level, false)),
            b"--" => Some((level, true)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(raw: &[u8]) -> Vec<(String, String)> {
        let message = split(raw);
        message
            .leaves
            .iter()
            .map(|part| {
                let body = String::from_utf8_lossy(part.body).trim().to_owned();
                (part.media_type.clone(), body)
            })
            .collect()
    }

    fn expected(leaves: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned =
            |(media_type, body): &(&str, &str)| ((*media_type).to_owned(), (*body).to_owned());
        leaves.iter().map(owned).collect()
    }

    #[test]
    fn leaves_of_nested_multiparts() {
        let raw = b"Content-Type: multipart/report; boundary=\"a\"\r\n\r\npreamble\r\n--a\r\n\
            Content-Type: multipart/alternative; boundary=ab\r\n\r\n--ab\r\n\r\none\r\n--ab\r\n\
            Content-Type: text/html\r\n\r\ntwo\r\n--ab--\r\nbetween\r\n--a \r\nContent-Type: message/rfc822\r\n\r\n\
            Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nthree\r\n--c--\r\n--a--\r\n--a\r\nepilogue";
        assert_eq!(
            leaves(raw),
            expected(&[
                ("text/plain", "one"),
                ("text/html", "two"),
                (
                    "message/rfc822",
                    "Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nthree\r\n--c--"
                ),
            ])
        );
    }

    #[test]
    fn what_is_cut_off_is_the_last_leaf() {
        let raw = b"Content-Type: multipart/report; boundary=a\n\n--a\n\none\n--a\nContent-Type: message/rfc822\n\nSub";
        assert_eq!(
            leaves(raw),
            expected(&[("text/plain", "one"), ("message/rfc822", "Sub")])
        );
        let raw =
            b"Content-Type: multipart/report; boundary=a\n\n--a\nContent-Type: text/html\n--a--";
        assert_eq!(leaves(raw), expected(&[("text/html", "")]));
        assert_eq!(
            leaves(b"Subject: x\n\nbody"),
            expected(&[("text/plain", "body")])
        );
        assert_eq!(leaves(b""), expected(&[("text/plain", "")]));
    }

    #[test]
    fn many_parts_are_few() {
        let mut raw = b"Content-Type: multipart/mixed; boundary=a\n\n".to_vec();
        raw.extend(b"--a\n\nx\n".repeat(10_000));
        assert_eq!(leaves(&raw).len(), PARTS);
        let mut raw = b"Content-Type: multipart/mixed; boundary=a\n\n".to_vec();
        raw.extend(b"--a\nContent-Type: multipart/mixed; boundary=a\n\n".repeat(10_000));
        assert!(leaves(&raw).len() <= PARTS);
    }
}
