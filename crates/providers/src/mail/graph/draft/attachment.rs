//! A file of a message.

use std::borrow::Cow;

use bytes::Bytes;
use mail_parser::{ContentType, HeaderName, MessagePart, MimeHeaders, PartType};

use super::super::transfer_encoding::octets;
use mailgate_types::encoded_words::joined;
use mailgate_types::message_parser::message_parser;

/// A file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::mail::graph) struct Attachment {
    pub(in crate::mail::graph) name: String,
    pub(in crate::mail::graph) content_type: String,
    /// Without the angle brackets.
    pub(in crate::mail::graph) content_id: Option<String>,
    /// The text displays it inline.
    pub(in crate::mail::graph) is_inline: bool,
    pub(in crate::mail::graph) content: Bytes,
}

/// A part's file name. Encoded words aren't allowed there (RFC 2047 §5), but occur.
pub(super) fn file_name(mime: &[u8], part: &MessagePart<'_>) -> Option<String> {
    let naming = [HeaderName::ContentType, HeaderName::ContentDisposition];
    let (mut header, mut is_joined, mut is_continued) = (Vec::new(), false, false);
    for field in part
        .headers
        .iter()
        .filter(|field| naming.contains(&field.name))
    {
        let raw = mime.get(field.offset_start as usize..field.offset_end as usize);
        let value = joined(raw.unwrap_or_default());
        is_joined |= matches!(value, Cow::Owned(_));
        // The parser returns neither of a name in pieces (RFC 2231 §3) and a second name.
        is_continued |= memchr::memmem::find(&value, b"*0").is_some();
        for piece in [
            field.name().as_bytes(),
            b":",
            value.trim_ascii_end(),
            b"\r\n",
        ] {
            header.extend_from_slice(piece);
        }
    }
    let named = if is_continued {
        MessagePart::attachment_name
    } else {
        named
    };
    if !is_joined {
        return named(part).map(str::to_owned);
    }
    header.extend_from_slice(b"\r\n");
    let parsed = message_parser().parse_headers(&header);
    let name = parsed.as_ref().and_then(|parsed| named(parsed.root_part()));
    name.map(str::to_owned)
}

/// A file name. An extended one takes precedence over a plain one (RFC 6266 §4.3). The parser doesn't distinguish them,
/// but only the extended one can have non-ASCII letters.
fn named<'a>(part: &'a MessagePart<'_>) -> Option<&'a str> {
    let of = |kind: Option<&'a ContentType<'_>>, name: &str| {
        let attributes = kind?.attributes()?.iter();
        let mut values = attributes.filter(|attribute| attribute.name == name);
        let first = values.next()?;
        let extended = values.find(|attribute| !attribute.value.is_ascii());
        Some(&*extended.unwrap_or(first).value)
    };
    of(part.content_disposition(), "filename").or_else(|| of(part.content_type(), "name"))
}

pub(super) fn attachment(
    part: &MessagePart<'_>,
    name: Option<&str>,
    is_message: bool,
    content: Bytes,
    number: usize,
) -> Attachment {
    let fallback = || {
        if is_message {
            format!("message-{number}.eml")
        } else {
            format!("attachment-{number}")
        }
    };
    let name = name
        .map(|name| name.chars().filter(|letter| !letter.is_control()).collect())
        .filter(|name: &String| !name.trim().is_empty())
        .unwrap_or_else(fallback);
    let has_extension = |extension: &str| name.to_ascii_lowercase().ends_with(extension);
    let name = if is_message && !has_extension(".eml") {
        format!("{name}.eml")
    } else {
        name
    };
    let content_type = if is_message {
        "message/rfc822".to_owned()
    } else {
        match part.content_type() {
            Some(kind) => match kind.subtype() {
                Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                None => kind.ctype().to_owned(),
            },
            None => "application/octet-stream".to_owned(),
        }
    };
    let content_id = part
        .content_id()
        .map(|id| id.trim_matches(['<', '>', ' ']).to_owned())
        .filter(|id| !id.is_empty());
    let says_attachment = part
        .content_disposition()
        .is_some_and(ContentType::is_attachment);
    Attachment {
        name,
        content_type,
        is_inline: content_id.is_some() && !says_attachment,
        content_id,
        content,
    }
}

/// A part's decoded bytes. Text keeps its character set.
pub(super) fn content(mime: &[u8], part: &mut MessagePart<'_>) -> Bytes {
    match std::mem::take(&mut part.body) {
        PartType::Binary(content) | PartType::InlineBinary(content) => {
            Bytes::from(content.into_owned())
        }
        PartType::Message(message) => Bytes::copy_from_slice(message.raw_message()),
        PartType::Text(text) | PartType::Html(text) => {
            let decoded = octets(mime, part);
            Bytes::from(decoded.unwrap_or_else(|| text.into_owned().into_bytes()))
        }
        PartType::Multipart(_) => Bytes::new(),
    }
}
