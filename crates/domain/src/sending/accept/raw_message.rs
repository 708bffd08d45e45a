//! Reads a message that an SMTP client submitted: its sender, the data for its log row, and the bytes to send. These
//! are the client's own, except that headers meant for the gateway alone are removed, a Received header and
//! X-Mailgate-Id are added in front, and a Date and a Message-ID where the client gave none (RFC 6409 §8.2, §8.3) or an
//! empty one, which is removed.

mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod named_senders;
mod private_headers;
mod receivers_headers;
mod sender;
mod sender_error;

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use mail_parser::{Header, HeaderName};

use self::fields::{Field, NoField, fields};
pub use self::named_senders::{NamedSender, UnclearSender};
use self::private_headers::{
    IDEMPOTENCY_KEY, NotOne, SEND_AT, is_named, metadata, sole_value, without_removed,
};
use self::receivers_headers::is_signed;
use self::sender::sole_address;
pub use self::sender_error::SenderError;
use super::idempotency::{IdempotencyKey, read_key};
use super::prepared::{Prepared, Summary};
use crate::compose::message_id_domain;
use mailgate_providers::mail::transport::Recipients;
use mailgate_types::door::Door;
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::encoded_words;
use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message::Message;
use mailgate_types::message_id;
use mailgate_types::message_parser::message_parser;
use mailgate_types::metadata::InvalidMetadata;
use mailgate_types::one_line::one_line;
use mailgate_types::send_at::{SendAt, SendAtError};

/// Largest size of a message's headers, in bytes.
const HEADER_BYTES: usize = 1024 * 1024;

/// Limits on a header's logged addresses: their number, the bytes of each, and the total bytes.
const LOGGED_ADDRESSES: usize = 1_000;
const ADDRESS_BYTES: usize = 320;
const ADDRESSES_BYTES: usize = 64 * 1024;

/// Characters of a subject that are logged.
const SUBJECT_LENGTH: usize = 998;

/// A submitted message whose sender is read, but not yet checked against the app's mailboxes.
#[derive(Debug)]
pub struct RawMessage {
    /// The one address of its one From header.
    pub from: EmailAddress,
    /// The client's name for the submission, from a header that is removed.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Its scheduled time, from a header that is removed; `None`: now.
    pub send_at: Option<SendAt>,
    /// Further senders in its headers, which must also be the mailbox's own.
    pub named_senders: Vec<NamedSender>,
    prepared: Prepared,
}

/// Why a message can't be sent from any mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RawMessageError {
    /// Not exactly one From header with exactly one address, or an address that readers may mistake for another.
    #[error(transparent)]
    From(SenderError),
    /// A header besides From names a sender other than the mailbox, or is ambiguous.
    #[error(
        "{0} must be given once, with one address that the mailbox in From may send as: its own or an alias; leave \
         it out otherwise"
    )]
    OtherSender(&'static str),
    /// A header that would be removed is covered by the client's own signature.
    #[error(
        "Authentication-Results, Received-SPF, ARC-…, Return-Path and Delivered-To are taken out, and a \
         DKIM-Signature of the message covers one of them: remove them before the message is signed"
    )]
    SignedByClient,
    /// A line among the headers is not a header field.
    #[error(
        "A line of the message's headers is neither a header field nor the continuation of one; an \
         empty line ends the headers"
    )]
    Malformed,
    /// The Idempotency-Key header is not valid.
    #[error("Idempotency-Key must be given once, with 1 to 255 printable characters")]
    IdempotencyKey,
    /// The X-Mailgate-Send-At header is given more than once.
    #[error("X-Mailgate-Send-At must be given once")]
    SendAtTwice,
    /// The X-Mailgate-Send-At header is not valid.
    #[error("X-Mailgate-Send-At {0}")]
    SendAt(SendAtError),
    /// The X-Mailgate-Metadata-… headers are not valid.
    #[error("X-Mailgate-Metadata-… {0}")]
    Metadata(InvalidMetadata),
    /// The Message-ID is longer than a line may be.
    #[error(
        "the Message-ID is longer than {} octets (RFC 5322 §2.1.1)",
        message_id::LONGEST
    )]
    MessageId,
    /// The headers are too large.
    #[error("the message's headers take more than 1 MiB")]
    TooManyHeaders,
}

impl RawMessage {
    /// Reads a message's headers. The message arrives in `pieces`; `recipients` is the envelope; `gateway` is the
    /// name in the Received header, which reveals nothing about the client.
    pub fn read(
        pieces: Vec<Bytes>,
        recipients: &[EmailAddress],
        smtputf8: bool,
        gateway: &str,
        at: DateTime<Utc>,
    ) -> Result<Self, RawMessageError> {
        let (content, others) = with_whole_headers(pieces)?;
        let fields = fields(&content).map_err(|NoField| RawMessageError::Malformed)?;
        let from = sole_sender(&fields, &content).map_err(RawMessageError::From)?;
        let named_senders = NamedSender::all(&fields, &from)
            .map_err(|UnclearSender(header)| RawMessageError::OtherSender(header))?;
        if is_signed(&fields) {
            return Err(RawMessageError::SignedByClient);
        }
        let parsed = message_parser()
            .parse_headers(content.as_ref())
            .ok_or(RawMessageError::Malformed)?;
        let headers = parsed.headers();
        if headers.len() != fields.len() {
            return Err(RawMessageError::Malformed);
        }
        let idempotency_key = idempotency_key(headers, recipients, &content, &others)?;
        let send_at = send_at(headers, &content, at)?;
        let metadata = metadata(headers, &content).map_err(RawMessageError::Metadata)?;
        let to = addresses(headers, &HeaderName::To);
        let cc = addresses(headers, &HeaderName::Cc);
        let named: HashSet<String> = to
            .iter()
            .chain(&cc)
            .map(|named| comparison_key(named))
            .collect();
        // A message without a To is shown as addressed to its first recipient, who is then no Bcc.
        let unnamed: Vec<String> = recipients
            .iter()
            .skip(usize::from(to.is_empty()))
            .filter(|recipient| !named.contains(&comparison_key(recipient.as_str())))
            .map(|recipient| recipient.as_str().to_owned())
            .collect();
        let to_address = if to.is_empty() {
            recipients
                .first()
                .map(ToString::to_string)
                .unwrap_or_default()
        } else {
            to.join(", ")
        };
        let header_end = headers
            .last()
            .map_or(0, |header| header.offset_end as usize);
        let needs_smtputf8 = recipients.iter().any(|recipient| !recipient.is_ascii())
            || (smtputf8 && !content[..header_end.min(content.len())].is_ascii());
        let leaves_at = send_at.map_or(at, SendAt::time);
        let id = LogId::at(leaves_at);
        let summary = Summary {
            from_address: from.to_string(),
            to_address,
            cc_addresses: cc,
            bcc_addresses: unnamed,
            subject: subject(&fields)
                .chars()
                .filter(|letter| !letter.is_control())
                .take(SUBJECT_LENGTH)
                .collect(),
            has_attachments: has_attachments(headers, &content, &others),
            metadata,
            door: Door::Smtp,
        };
        let mut pieces = vec![received(gateway, id, smtputf8, at)];
        let is_date = |field: &Field<'_>| field.is_named("date") && !field.is_empty();
        if !fields.iter().any(is_date) {
            pieces.push(Bytes::from(format!("Date: {}\r\n", leaves_at.to_rfc2822())));
        }
        let message_id = if let Some(own) = own_message_id(&fields)? {
            Some(own).filter(|own| !own.is_empty())
        } else {
            let own = format!("<{id}@{}>", message_id_domain(&from));
            pieces.push(Bytes::from(format!("Message-ID: {own}\r\n")));
            Some(own)
        };
        pieces.extend(without_removed(headers, &content));
        pieces.extend(others);
        Ok(Self {
            from,
            idempotency_key,
            send_at,
            named_senders,
            prepared: Prepared {
                id,
                at: leaves_at,
                message: Message::from_pieces(pieces),
                recipients: Recipients {
                    addresses: recipients
                        .iter()
                        .map(|recipient| recipient.as_str().to_owned())
                        .collect(),
                    smtputf8: needs_smtputf8,
                },
                message_id,
                summary,
            },
        })
    }

    /// The message with `from_address` as its logged sender: the address as spelled among the app's mailboxes.
    #[must_use]
    pub fn prepared(&self, from_address: &str) -> Prepared {
        let mut prepared = self.prepared.clone();
        from_address.clone_into(&mut prepared.summary.from_address);
        prepared
    }
}

/// The first piece, joined with as many more as it takes to hold all headers, and the remaining ones.
fn with_whole_headers(mut pieces: Vec<Bytes>) -> Result<(Bytes, Vec<Bytes>), RawMessageError> {
    let mut others = pieces.split_off(pieces.len().min(1));
    let first = pieces.pop().unwrap_or_default();
    if has_header_end(&first) || others.is_empty() {
        return Ok((first, others));
    }
    let mut joined = first.to_vec();
    let mut taken = 0;
    while taken < others.len() && !has_header_end(&joined) {
        if joined.len() > HEADER_BYTES {
            return Err(RawMessageError::TooManyHeaders);
        }
        joined.extend_from_slice(&others[taken]);
        taken += 1;
    }
    Ok((Bytes::from(joined), others.split_off(taken)))
}

fn has_header_end(content: &[u8]) -> bool {
    content.starts_with(b"\r\n") || memchr::memmem::find(content, b"\r\n\r\n").is_some()
}

/// The subject, decoded; of several, mail readers show the last one, or any.
fn subject(fields: &[Field<'_>]) -> String {
    let mut named = fields.iter().rev();
    let last = named.find(|field| field.is_named("subject"));
    last.map(|field| encoded_words::decoded(field.value))
        .unwrap_or_default()
}

/// Every From header counts: which of two a receiver shows is unpredictable.
fn sole_sender(fields: &[Field<'_>], content: &[u8]) -> Result<EmailAddress, SenderError> {
    let mut from = (fields.iter()).filter(|field| field.is_named("from"));
    match (from.next(), from.next()) {
        (Some(only), None) => sole_address(only.value).ok_or_else(|| SenderError::of(only.value)),
        (Some(_), Some(_)) => Err(SenderError::Several),
        _ if content.starts_with(b"\r\n") => Err(SenderError::EmptyFirstLine),
        _ => Err(SenderError::Missing),
    }
}

/// The Message-ID as written; several are joined, since it is unknown which of them a provider uses. `None` if there
/// is none: the message gets one (RFC 6409 §8.3).
fn own_message_id(fields: &[Field<'_>]) -> Result<Option<String>, RawMessageError> {
    let all: Vec<String> = (fields.iter())
        .filter(|field| field.is_named("message-id") && !field.is_empty())
        .map(|field| {
            String::from_utf8_lossy(field.value)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    if all.is_empty() {
        return Ok(None);
    }
    let id = all.join(" ");
    // A longer one is stored truncated, and could not be searched for.
    if id.len() > message_id::LONGEST {
        return Err(RawMessageError::MessageId);
    }
    Ok(Some(message_id::bounded(&id)))
}

fn addresses(headers: &[Header<'_>], name: &HeaderName<'_>) -> Vec<String> {
    let mut room = ADDRESSES_BYTES;
    headers
        .iter()
        .filter(|header| is_named(header, name))
        .filter_map(|header| header.value.as_address())
        .flat_map(mail_parser::Address::iter)
        .filter_map(|address| address.address.as_deref())
        .map(|address| one_line(address, ADDRESS_BYTES))
        .filter(|address| !address.is_empty())
        .take(LOGGED_ADDRESSES)
        .take_while(|address| {
            let left = room.checked_sub(address.len());
            room = left.unwrap_or_default();
            left.is_some()
        })
        .collect()
}

/// The headers in front: the Received header, and the log id.
fn received(gateway: &str, id: LogId, smtputf8: bool, at: DateTime<Utc>) -> Bytes {
    // RFC 8314 §4.3 and RFC 6531 §4.3 name the protocols; submission here is always authenticated
    // and under TLS.
    let protocol = if smtputf8 { "UTF8SMTPSA" } else { "ESMTPSA" };
    Bytes::from(format!(
        "Received: by {gateway} with {protocol} id {id};\r\n\t{}\r\n{LOG_ID_HEADER}: {id}\r\n",
        at.to_rfc2822()
    ))
}

/// The key of a submission, with a digest over its envelope and all of its content.
fn idempotency_key(
    headers: &[Header<'_>],
    recipients: &[EmailAddress],
    content: &Bytes,
    others: &[Bytes],
) -> Result<Option<IdempotencyKey>, RawMessageError> {
    let value = sole_value(headers, content, &IDEMPOTENCY_KEY);
    let Some(value) = value.map_err(|NotOne| RawMessageError::IdempotencyKey)? else {
        return Ok(None);
    };
    let key = read_key(value).ok_or(RawMessageError::IdempotencyKey)?;
    let envelope = recipients
        .iter()
        .flat_map(|recipient| [recipient.as_str().as_bytes(), b"\n"]);
    let parts = envelope
        .chain(std::iter::once(content.as_ref()))
        .chain(others.iter().map(AsRef::as_ref));
    Ok(Some(IdempotencyKey::over(key, parts)))
}

fn send_at(
    headers: &[Header<'_>],
    content: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<SendAt>, RawMessageError> {
    let value = sole_value(headers, content, &SEND_AT);
    let value = value.map_err(|NotOne| RawMessageError::SendAtTwice)?;
    let parsed = value.map(|value| SendAt::parse_header(value, now));
    parsed.transpose().map_err(RawMessageError::SendAt)
}

/// Whether the message, or a part of a multipart message, is declared as an attachment.
fn has_attachments(headers: &[Header<'_>], content: &[u8], others: &[Bytes]) -> bool {
    let is_attachment = |header: &Header<'_>| {
        is_named(header, &HeaderName::ContentDisposition)
            && header
                .value
                .as_content_type()
                .is_some_and(|value| value.c_type.eq_ignore_ascii_case("attachment"))
    };
    let is_multipart = headers.iter().any(|header| {
        is_named(header, &HeaderName::ContentType)
            && header
                .value
                .as_content_type()
                .is_some_and(|value| value.c_type.eq_ignore_ascii_case("multipart"))
    });
    headers.iter().any(is_attachment) || (is_multipart && says_attachment(content, others))
}

/// Searches each piece, and across the seams between them.
fn says_attachment(content: &[u8], others: &[Bytes]) -> bool {
    const SEAM: usize = 256;
    let mut before = content;
    a_line_says_attachment(content)
        || others.iter().any(|piece| {
            let seam = [
                &before[before.len().saturating_sub(SEAM)..],
                &piece[..piece.len().min(SEAM)],
            ]
            .concat();
            before = piece;
            a_line_says_attachment(&seam) || a_line_says_attachment(piece)
        })
}

/// Searches for a part's header without parsing the message, which would copy it.
fn a_line_says_attachment(content: &[u8]) -> bool {
    const FIELD: &[u8] = b"content-disposition:";
    const ATTACHMENT: &[u8] = b"attachment";
    memchr::memchr_iter(b'\n', content).any(|line_end| {
        let line = &content[line_end + 1..];
        line.get(..FIELD.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(FIELD))
            && line[FIELD.len()..]
                .trim_ascii_start()
                .get(..ATTACHMENT.len())
                .is_some_and(|value| value.eq_ignore_ascii_case(ATTACHMENT))
    })
}

#[cfg(test)]
mod tests;
