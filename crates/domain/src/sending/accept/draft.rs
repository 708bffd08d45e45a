//! A message whose sender isn't known yet.

use chrono::{DateTime, Utc};

use super::prepared::Prepared;
use super::raw_message::{NamedSender, RawMessage};
use crate::compose::Fields;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::metadata::Metadata;

/// Messages of this size and above are composed off the threads that serve connections.
const LARGE: usize = 256 * 1024;

/// Fields up to this size are kept until the message composed from them is opened.
const CHEAP: usize = 16 * 1024;

/// A message as the app submitted it, completed once its sender is known.
#[derive(Debug)]
pub struct Draft {
    content: Source,
    /// The app's metadata for a message of fields; a raw message has it in its headers.
    metadata: Metadata,
    /// The last message composed, and its sender.
    made: Option<(String, Prepared)>,
}

#[derive(Debug)]
enum Source {
    /// Fields, `None` once a message was composed from them; `limit` is the largest message size in bytes.
    Fields {
        fields: Option<Fields>,
        limit: usize,
    },
    /// A message as an SMTP client submitted it.
    Raw(RawMessage),
}

/// Why no message can be composed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// It would be too large.
    #[error("the message may have {0} bytes at most")]
    TooLarge(usize),
    /// The mailbox's address isn't valid in a header.
    #[error("the mailbox's address isn't valid in a header")]
    Address,
    /// It was composed for another sender, and can't be composed again.
    #[error("the mailbox changed while the message was being accepted")]
    Changed,
    /// The task that composed it was interrupted.
    #[error("the message could not be composed")]
    CutOff,
}

impl Draft {
    /// A draft of fields; the message may have `limit` bytes.
    #[must_use]
    pub fn of_fields(fields: Fields, metadata: Metadata, limit: usize) -> Self {
        Self {
            content: Source::Fields {
                fields: Some(fields),
                limit,
            },
            metadata,
            made: None,
        }
    }

    /// A draft of a raw message submitted over SMTP.
    #[must_use]
    pub fn of_raw(raw: RawMessage) -> Self {
        Self {
            content: Source::Raw(raw),
            metadata: Metadata::default(),
            made: None,
        }
    }

    /// Further senders in its headers, which must also be the mailbox's own.
    pub(in crate::sending) fn named_senders(&self) -> &[NamedSender] {
        match &self.content {
            Source::Fields { .. } => &[],
            Source::Raw(raw) => &raw.named_senders,
        }
    }

    /// Whether the message is cheap to compose a second time.
    pub(in crate::sending) fn is_cheap(&self) -> bool {
        match &self.content {
            Source::Fields { fields, .. } => {
                (fields.as_ref()).is_some_and(|fields| fields.least_size() < CHEAP)
            }
            Source::Raw(_) => true,
        }
    }

    /// Composes the message that `address` sends at the time `at`.
    pub(in crate::sending) async fn prepare(
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
        let mut prepared = match &mut self.content {
            Source::Raw(raw) => return Ok(raw.prepared(address)),
            Source::Fields { fields, limit } => {
                let from = EmailAddress::parse(address).map_err(|_| PrepareError::Address)?;
                let kept = if is_cheap { fields.clone() } else { None };
                let used = std::mem::replace(fields, kept).ok_or(PrepareError::Changed)?;
                compose_within(used, from, *limit, at).await?
            }
        };
        prepared.summary.metadata = self.metadata.clone();
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
