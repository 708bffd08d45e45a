//! Converts a MIME message to Graph's JSON, for messages that are too large to be submitted whole: the fields of a
//! draft, and separate attachments.
//!
//! Exchange rebuilds the message from its fields. Messages whose structure would be lost are refused.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{
    Address, ContentType, Header, HeaderName, Message, MessagePart, MimeHeaders, PartType,
};
use serde_json::{Map, Value, json};

use super::indivisible::indivisible;
use super::structure;
use super::transfer_encoding::{self, not_decoded};
use crate::mail::verdict::Failure;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::encoded_words::{decoded, joined};
use mailgate_types::message_parser::message_parser;

/// Maximum number of custom headers (Graph's `internetMessageHeaders`).
const OWN_HEADERS: usize = 5;

/// Longest value of such a header, in bytes.
const OWN_HEADER_BYTES: usize = 995;

/// The namespace of named properties that Exchange writes as headers ([MS-OXPROPS] `PS_INTERNET_HEADERS`), for headers
/// that exceed or don't qualify for `internetMessageHeaders`.
const AS_HEADER: &str = "String {00020386-0000-0000-C000-000000000046} Name";

/// Maximum number of headers sent as properties, and the longest value of one in bytes: Graph's documentation gives no
/// limit for the first, and 4 KB for a property's value.
const FURTHER_HEADERS: usize = 50;
const FURTHER_HEADER_BYTES: usize = 4_000;

/// Headers that have fields of their own here, or that Exchange writes itself.
const FIELDS: [&str; 13] = [
    "from",
    "sender",
    "to",
    "cc",
    "bcc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "importance",
    "mime-version",
];

/// Headers from the message's path, which don't apply to a rebuilt message: a signature over it is broken.
const OF_THE_WAY: [&str; 7] = [
    "received",
    "return-path",
    "delivered-to",
    "received-spf",
    "authentication-results",
    "dkim-signature",
    "domainkey-signature",
];

/// The MAPI properties behind In-Reply-To and References ([MS-OXPROPS] `PidTagInReplyToId`,
/// `PidTagInternetReferences`).
const IN_REPLY_TO: &str = "String 0x1042";
const REFERENCES: &str = "String 0x1039";

/// A message, converted for Graph.
#[derive(Debug)]
pub(super) struct Draft {
    /// The fields of the draft, except its sender.
    pub(super) fields: Value,
    /// The sender.
    pub(super) from: Option<Value>,
    /// Its files, in order.
    pub(super) attachments: Vec<Attachment>,
}

/// A file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) content_type: String,
    /// Without the angle brackets.
    pub(super) content_id: Option<String>,
    /// The text displays it inline.
    pub(super) is_inline: bool,
    pub(super) content: Bytes,
}

/// Converts a message. Every one of `recipients` that no header names becomes a Bcc.
///
/// # Errors
///
/// A permanent failure if it can't be parsed, or has headers or a structure that would be lost.
pub(super) fn convert(mime: &[u8], recipients: &[String]) -> Result<Draft, Failure> {
    let mut opened = structure::open(mime)?;
    let mime = std::mem::take(&mut opened.mime);
    let mime = mime.as_slice();
    let mut message = message_parser()
        .parse(mime)
        .ok_or_else(|| Failure::own("5.6.0 The message can't be read"))?;
    if let Some(part) = indivisible(&message) {
        return Err(Failure::own(format!(
            "5.6.3 The message is too large to go to Microsoft Graph whole, and in pieces its {part} would not arrive \
             as such: make the message smaller than 3 MB, or send it from a mailbox that is connected by SMTP"
        )));
    }
    if message.parts.iter().any(|part| part.is_encoding_problem) {
        return Err(not_decoded());
    }
    let bodies = bodies(&message);
    for number in &bodies {
        if let Some(part) = usize::try_from(*number)
            .ok()
            .and_then(|number| message.parts.get_mut(number))
        {
            settle_charset(mime, part);
        }
    }
    let fields = fields(&message, recipients)?;
    let from = addresses(&message, &HeaderName::From);
    let from = from.first().map(Addressee::json);
    let parts = std::mem::take(&mut message.parts);
    let mut attachments = Vec::new();
    for (number, mut part) in (0_u32..).zip(parts) {
        if !bodies.contains(&number) && !matches!(part.body, PartType::Multipart(_)) {
            let number = opened.number(&part);
            let taken_out = number.and_then(|number| opened.enclosed.get_mut(number));
            let is_message = taken_out.is_some() || part.is_message();
            let (part, content, name) = if let Some(enclosed) = taken_out {
                let content = std::mem::take(&mut enclosed.content);
                let part = std::mem::take(&mut enclosed.headers);
                let name = part.attachment_name().map(str::to_owned);
                (part, Bytes::from(content), name)
            } else {
                let content = content(mime, &mut part);
                let name = file_name(mime, &part);
                (part, content, name)
            };
            let number = attachments.len() + 1;
            attachments.push(attachment(
                &part,
                name.as_deref(),
                is_message,
                content,
                number,
            ));
        }
    }
    Ok(Draft {
        fields,
        from,
        attachments,
    })
}

fn fields(message: &Message<'_>, recipients: &[String]) -> Result<Value, Failure> {
    let to = addresses(message, &HeaderName::To);
    let cc = addresses(message, &HeaderName::Cc);
    let mut bcc = addresses(message, &HeaderName::Bcc);
    let named: HashSet<String> = to
        .iter()
        .chain(&cc)
        .chain(&bcc)
        .map(|named| {
            // Graph may reject a malformed address.
            let is_one = EmailAddress::parse(&named.address).is_ok();
            if is_one {
                comparison_key(&named.address)
            } else {
                named.address.to_lowercase()
            }
        })
        .collect();
    bcc.extend(
        recipients
            .iter()
            .filter(|recipient| !named.contains(&comparison_key(recipient)))
            .map(|recipient| Addressee {
                name: None,
                address: recipient.clone(),
            }),
    );
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("subject", subject(message).into());
    set("body", body(message));
    for (name, addressees) in [
        ("toRecipients", to),
        ("ccRecipients", cc),
        ("bccRecipients", bcc),
        ("replyTo", addresses(message, &HeaderName::ReplyTo)),
    ] {
        if !addressees.is_empty() {
            set(name, addressees.iter().map(Addressee::json).collect());
        }
    }
    if let Some(id) = message.message_id() {
        set("internetMessageId", format!("<{id}>").into());
    }
    if let Some(importance) = importance(message) {
        set("importance", importance.into());
    }
    let (own, further) = headers(message)?;
    if !own.is_empty() {
        set("internetMessageHeaders", own.into());
    }
    let threads = [
        (IN_REPLY_TO, HeaderName::InReplyTo),
        (REFERENCES, HeaderName::References),
    ]
    .into_iter()
    .filter_map(|(id, name)| {
        let header = message
            .headers()
            .iter()
            .find(|header| header.name == name)?;
        let value = shortened(unfolded(message, header));
        (!value.is_empty()).then(|| json!({ "id": id, "value": value }))
    });
    let properties: Vec<Value> = threads.chain(further).collect();
    if !properties.is_empty() {
        set("singleValueExtendedProperties", properties.into());
    }
    Ok(Value::Object(fields))
}

struct Addressee {
    name: Option<String>,
    address: String,
}

impl Addressee {
    fn json(&self) -> Value {
        match &self.name {
            Some(name) => json!({ "emailAddress": { "name": name, "address": self.address } }),
            None => json!({ "emailAddress": { "address": self.address } }),
        }
    }
}

fn addresses(message: &Message<'_>, name: &HeaderName<'_>) -> Vec<Addressee> {
    let headers = message.headers().iter();
    headers
        .filter(|header| header.name == *name)
        .flat_map(|header| match joined(raw(message, header)) {
            Cow::Borrowed(_) => header
                .value
                .as_address()
                .map(addressees)
                .unwrap_or_default(),
            // The parser decodes each word on its own.
            Cow::Owned(value) => {
                let header = [b"To: ", value.as_slice(), b"\r\n\r\n"].concat();
                let parsed = message_parser().parse_headers(&header);
                let to = parsed.as_ref().and_then(Message::to);
                to.map(addressees).unwrap_or_default()
            }
        })
        .collect()
}

fn addressees(address: &Address<'_>) -> Vec<Addressee> {
    address
        .iter()
        .filter_map(|entry| {
            let (name, address) = (entry.name.as_deref(), entry.address.as_deref()?);
            // The parser mistakes a quoted local part without angle brackets for a display name.
            Some(if address.starts_with('@') {
                Addressee {
                    name: None,
                    address: format!("\"{}\"{address}", name.unwrap_or_default()),
                }
            } else {
                Addressee {
                    name: name.map(str::to_owned),
                    address: address.to_owned(),
                }
            })
        })
        .collect()
}

/// The parts that become the body: the displayed ones, and the text alternatives of displayed HTML.
fn bodies(message: &Message<'_>) -> HashSet<u32> {
    let is_text = |number: &&u32| {
        message
            .part(**number)
            .is_some_and(|part| matches!(part.body, PartType::Text(_) | PartType::Html(_)))
    };
    message
        .html_body
        .iter()
        .chain(&message.text_body)
        .filter(is_text)
        .copied()
        .collect()
}

/// HTML if any part is HTML, with the others converted to it; else text.
fn body(message: &Message<'_>) -> Value {
    let has_html = message
        .html_body
        .iter()
        .filter_map(|number| message.part(*number))
        .any(MessagePart::is_text_html);
    let (content_type, pieces): (_, Vec<_>) = if has_html {
        let pieces = (0..message.html_body.len()).filter_map(|number| message.body_html(number));
        ("html", pieces.collect())
    } else {
        let pieces = (0..message.text_body.len()).filter_map(|number| message.body_text(number));
        ("text", pieces.collect())
    };
    json!({ "contentType": content_type, "content": pieces.join("\r\n") })
}

fn importance(message: &Message<'_>) -> Option<&'static str> {
    let value = message.header_raw(HeaderName::Importance)?;
    ["low", "normal", "high"]
        .into_iter()
        .find(|word| value.trim().eq_ignore_ascii_case(word))
}

/// The message's other headers: the first few whose names begin with `x-` as headers, since Graph accepts no others
/// there, and the rest as properties.
fn headers(message: &Message<'_>) -> Result<(Vec<Value>, Vec<Value>), Failure> {
    let (mut own, mut further) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    for header in message.headers() {
        let name = header.name().trim();
        let key = name.to_ascii_lowercase();
        let value = unfolded(message, header);
        if !is_to_be_kept(&key) || value.is_empty() {
            continue;
        }
        let fits = own.len() < OWN_HEADERS && value.len() <= OWN_HEADER_BYTES;
        if key.starts_with("x-") && fits {
            own.push(json!({ "name": name, "value": value }));
            continue;
        }
        // A property has one value, and none is truncated.
        let is_new = names.insert(key);
        if !is_new || value.len() > FURTHER_HEADER_BYTES || further.len() == FURTHER_HEADERS {
            return Err(Failure::own(format!(
                "5.6.0 The message is too large to go to Microsoft Graph whole, and in pieces its header {name} \
                 would be lost, which is there twice, longer than {FURTHER_HEADER_BYTES} bytes, or one of more \
                 than {FURTHER_HEADERS}: leave it out, or make the message smaller than 3 MB"
            )));
        }
        further.push(json!({ "id": format!("{AS_HEADER} {name}"), "value": value }));
    }
    Ok((own, further))
}

/// Whether a header matters to the recipient, and has no field of its own.
fn is_to_be_kept(key: &str) -> bool {
    // Exchange reserves these for itself.
    let begins = ["content-", "arc-", "x-ms-"];
    !FIELDS.contains(&key)
        && !OF_THE_WAY.contains(&key)
        && !begins.iter().any(|prefix| key.starts_with(prefix))
}

/// A header's raw value, on one line.
fn unfolded(message: &Message<'_>, header: &Header<'_>) -> String {
    String::from_utf8_lossy(raw(message, header))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The ids of a thread that fit a property: the first and the last ones, as RFC 5537 §3.4.4 shortens References. An id
/// longer than a property is dropped.
fn shortened(ids: String) -> String {
    let mut from = ids.len().saturating_sub(FURTHER_HEADER_BYTES);
    if from == 0 {
        return ids;
    }
    let first = ids.split(' ').next().unwrap_or_default();
    from = ids.ceil_char_boundary(from + first.len() + 1);
    let last = ids.get(from..).and_then(|rest| rest.split_once(' '));
    last.map_or(String::new(), |(_, last)| format!("{first} {last}"))
}

/// A header's value as it is written.
fn raw<'a>(message: &'a Message<'_>, header: &Header<'_>) -> &'a [u8] {
    let (start, end) = (header.offset_start as usize, header.offset_end as usize);
    message.raw_message.get(start..end).unwrap_or_default()
}

fn subject(message: &Message<'_>) -> String {
    let mut headers = message.headers().iter().rev();
    let subject = headers.find(|header| header.name == HeaderName::Subject);
    subject
        .map(|header| decoded(raw(message, header)))
        .unwrap_or_default()
}

/// A part's file name. Encoded words aren't allowed there (RFC 2047 §5), but occur.
fn file_name(mime: &[u8], part: &MessagePart<'_>) -> Option<String> {
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

fn attachment(
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

/// A text's octets, in its character set.
fn octets(mime: &[u8], part: &MessagePart<'_>) -> Option<Vec<u8>> {
    let (start, end) = (part.offset_body as usize, part.offset_end as usize);
    transfer_encoding::decoded(part.encoding, mime.get(start..end).unwrap_or_default())
}

/// Decodes text, as other programs do, if its character set has an unusual name, is unknown, or is ASCII although the
/// text isn't.
fn settle_charset(mime: &[u8], part: &mut MessagePart<'_>) {
    let Some(octets) = octets(mime, part).filter(|octets| !octets.is_ascii()) else {
        return;
    };
    let charset = (part.content_type())
        .and_then(|kind| kind.attribute("charset"))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let decoder = match charset.as_str() {
        "cp949" | "ms949" | "windows-949" | "uhc" => charset_decoder(b"euc-kr"),
        "cp932" | "ms932" | "windows-31j" => charset_decoder(b"shift_jis"),
        "" | "us-ascii" | "ascii" | "ansi_x3.4-1968" | "iso646-us" | "646" => None,
        // The parser has used it.
        known if charset_decoder(known.as_bytes()).is_some() => return,
        _ => None,
    };
    let text = match (decoder, String::from_utf8(octets)) {
        (Some(decoder), octets) => {
            decoder(&octets.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes))
        }
        (None, Ok(text)) => text,
        (None, Err(error)) => match charset_decoder(b"windows-1252") {
            Some(decoder) => decoder(error.as_bytes()),
            None => return,
        },
    };
    part.body = match part.body {
        PartType::Html(_) => PartType::Html(text.into()),
        _ => PartType::Text(text.into()),
    };
}

/// A part's decoded bytes. Text keeps its character set.
fn content(mime: &[u8], part: &mut MessagePart<'_>) -> Bytes {
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

#[cfg(test)]
mod tests;
