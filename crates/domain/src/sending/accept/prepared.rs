//! A message that is ready to send, and the data for its log row.

use chrono::{DateTime, Utc};

use crate::compose::{Fields, compose};
use mailgate_providers::mail::transport::Recipients;
use mailgate_types::door::Door;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;
use mailgate_types::metadata::Metadata;

/// The details of a message shown in the log.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The sender's address.
    pub from_address: String,
    /// The To header's addresses, or the envelope's first.
    pub to_address: String,
    /// The Cc header's addresses.
    pub cc_addresses: Vec<String>,
    /// Recipients that no header names.
    pub bcc_addresses: Vec<String>,
    /// The subject, decoded.
    pub subject: String,
    /// Whether files are attached.
    pub has_attachments: bool,
    /// The app's metadata.
    pub metadata: Metadata,
    /// How it was submitted.
    pub door: Door,
}

/// A message that is ready to send.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its id in the log, which its Received header names too.
    pub id: LogId,
    /// The timestamp in the id: `sent_at` in the log. It is in the future for a scheduled message.
    pub at: DateTime<Utc>,
    /// The raw message.
    pub message: Message,
    /// The envelope.
    pub recipients: Recipients,
    /// Its Message-ID header with the angle brackets.
    pub message_id: Option<String>,
    /// The details shown in the log.
    pub summary: Summary,
}

impl Prepared {
    /// Composes the message that `from` sends at the time `at`.
    #[must_use]
    pub fn composed(fields: Fields, from: &EmailAddress, at: DateTime<Utc>) -> Self {
        let id = LogId::at(at);
        let to_address = fields.to.to_string();
        let composed = compose(fields, from, at, &id.to_string());
        Self {
            id,
            at,
            message: composed.message,
            recipients: Recipients {
                addresses: composed.recipients,
                smtputf8: composed.smtputf8,
            },
            message_id: Some(composed.message_id),
            summary: Summary {
                from_address: from.to_string(),
                to_address,
                cc_addresses: composed.cc,
                bcc_addresses: composed.bcc,
                subject: composed.subject,
                has_attachments: composed.has_attachments,
                metadata: Metadata::default(),
                door: Door::Rest,
            },
        }
    }
}
