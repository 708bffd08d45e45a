//! A message that is ready to go out, and what its log row will say.

use chrono::{DateTime, Utc};

use super::submitted::Submitted;
use crate::compose::{Fields, compose};
use crate::providers::mail::transport::Recipients;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

/// Messages from this size on are composed off the threads that serve connections.
const LARGE: usize = 256 * 1024;

/// Fields up to this size are kept until the message made of them is opened.
const CHEAP: usize = 16 * 1024;

/// What the log tells of a message.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// What the mailbox sends it as.
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
}

/// A message that is ready to go out.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its id in the log, which its Received header names too.
    pub id: LogId,
    /// The moment that the id holds: what the log calls `sent_at`.
    pub at: DateTime<Utc>,
    /// The bytes.
    pub message: Message,
    /// The envelope.
    pub recipients: Recipients,
    /// Its Message-ID header with the angle brackets.
    pub message_id: Option<String>,
    /// What the log tells.
    pub summary: Summary,
}

impl Prepared {
    /// Composes the message that `from` sends at the moment `at`.
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
            },
        }
    }
}

/// What a door has read, of which a message is made once its sender is known.
#[derive(Debug)]
pub struct Draft {
    content: Source,
    /// What was made last, and as whom.
    made: Option<(String, Prepared)>,
}

#[derive(Debug)]
enum Source {
    /// Fields, `None` once a message was made of them; `limit` is the most bytes that it may have.
    Fields {
        fields: Option<Fields>,
        limit: usize,
    },
    /// A message as an SMTP client submitted it.
    Submitted(Submitted),
}

/// No message can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// It would be too large.
    #[error("the message may have {0} bytes at most")]
    TooLarge(usize),
    /// The mailbox's address is none.
    #[error("the mailbox has no address that can stand in a header")]
    Address,
    /// It was made for another sender, and can't be made anew.
    #[error("the mailbox has changed while the message was taken")]
    Changed,
    /// The work was cut off.
    #[error("the message could not be put together")]
    CutOff,
}

impl Draft {
    /// Of fields; the message may have `limit` bytes.
    #[must_use]
    pub fn of_fields(fields: Fields, limit: usize) -> Self {
        Self {
            content: Source::Fields {
                fields: Some(fields),
                limit,
            },
            made: None,
        }
    }

    /// Of a message that was submitted.
    #[must_use]
    pub fn of_submitted(submitted: Submitted) -> Self {
        Self {
            content: Source::Submitted(submitted),
            made: None,
        }
    }

    /// Whether it costs little to make the message a second time.
    pub(super) fn is_cheap(&self) -> bool {
        match &self.content {
            Source::Fields { fields, .. } => {
                (fields.as_ref()).is_some_and(|fields| fields.least_size() < CHEAP)
            }
            Source::Submitted(_) => true,
        }
    }

    /// The message as `address` sends it, at the moment `at`.
    pub(super) async fn prepare(
        &mut self,
        address: &str,
        at: DateTime<Utc>,
    ) -> Result<Prepared, PrepareError> {
        if let Some((sender, prepared)) = &self.made
            && sender == address
        {
            return Ok(prepared.clone());
        }
        let is_cheap = self.is_cheap();
        let prepared = match &mut self.content {
            Source::Submitted(submitted) => return Ok(submitted.prepared(address)),
            Source::Fields { fields, limit } => {
                let from = EmailAddress::parse(address).map_err(|_| PrepareError::Address)?;
                let kept = if is_cheap { fields.clone() } else { None };
                let used = std::mem::replace(fields, kept).ok_or(PrepareError::Changed)?;
                compose_within(used, from, *limit, at).await?
            }
        };
        if !is_cheap {
            self.made = Some((address.to_owned(), prepared.clone()));
        }
        Ok(prepared)
    }
}

async fn compose_within(
    fields: Fields,
    from: EmailAddress,
    limit: usize,
    at: DateTime<Utc>,
) -> Result<Prepared, PrepareError> {
    let size = fields.least_size();
    if size > limit {
        return Err(PrepareError::TooLarge(limit));
    }
    let make = move || Prepared::composed(fields, &from, at);
    let prepared = if size < LARGE {
        make()
    } else {
        tokio::task::spawn_blocking(make)
            .await
            .map_err(|_| PrepareError::CutOff)?
    };
    if prepared.message.size() > limit {
        return Err(PrepareError::TooLarge(limit));
    }
    Ok(prepared)
}
