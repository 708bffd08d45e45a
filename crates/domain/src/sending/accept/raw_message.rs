//! Reads a message that an SMTP client submitted: its sender, the data for its log row, and the bytes to send. These
//! are the client's own, except that headers meant for the gateway alone are removed, a Received header and
//! X-Mailgate-Id are added in front, and a Date and a Message-ID where the client gave none (RFC 6409 §8.2, §8.3) or an
//! empty one, which is removed.

mod attachments;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header_section;
mod named_senders;
mod private_headers;
mod receivers_headers;
mod sender;
mod sender_error;
mod summary;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use self::attachments::has_attachments;
use self::fields::{Field, NoField, fields};
use self::header_section::with_whole_headers;
pub use self::named_senders::{NamedSender, UnclearSender};
use self::private_headers::{idempotency_key, metadata, send_at, without_removed};
use self::receivers_headers::is_signed;
use self::sender::sole_address;
pub use self::sender_error::SenderError;
use self::summary::summary;
use super::idempotency::IdempotencyKey;
use super::prepared::Prepared;
use crate::compose::message_id_domain;
use mailgate_providers::mail::transport::Recipients;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{LOG_ID_HEADER, LogId};
use mailgate_types::message::Message;
use mailgate_types::message_id;
use mailgate_types::message_parser::message_parser;
use mailgate_types::metadata::InvalidMetadata;
use mailgate_types::send_at::{SendAt, SendAtError};

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
        let header_end = headers
            .last()
            .map_or(0, |header| header.offset_end as usize);
        let needs_smtputf8 = recipients.iter().any(|recipient| !recipient.is_ascii())
            || (smtputf8 && !content[..header_end.min(content.len())].is_ascii());
        let leaves_at = send_at.map_or(at, SendAt::time);
        let id = LogId::at(leaves_at);
        let has_attachments = has_attachments(headers, &content, &others);
        let summary = summary(
            &from,
            recipients,
            headers,
            &fields,
            has_attachments,
            metadata,
        );
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

#[cfg(test)]
mod tests;
