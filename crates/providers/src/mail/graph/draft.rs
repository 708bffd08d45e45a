//! Converts a MIME message to Graph's JSON, for messages that are too large to be submitted whole: the fields of a
//! draft, and separate attachments.
//!
//! Exchange rebuilds the message from its fields. Messages whose structure would be lost are refused.

mod addressee;
pub(super) mod attachment;
mod body;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use mail_parser::{HeaderName, MimeHeaders, PartType};
use serde_json::Value;

use self::addressee::{Addressee, addresses};
use self::attachment::{Attachment, attachment, content, file_name};
use self::body::{bodies, settle_charset};
use self::fields::fields;
use super::indivisible::indivisible;
use super::structure;
use super::transfer_encoding::not_decoded;
use crate::mail::verdict::Failure;
use mailgate_types::message_parser::message_parser;

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
