//! The outcome of a message, as its caller sees it. What follows from an attempt, and when the next one is due, is in
//! [`after_attempt`].

pub(crate) mod after_attempt;
pub(crate) mod facts;
pub(crate) mod sent_mail;
pub(crate) mod verify;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use mailgate_providers::mail::verdict::Failure;
use mailgate_types::ids::LogId;
use mailgate_types::plugin::Plugin;

/// The outcome of a message that the gateway accepted. It is stored under its idempotency key in this form, which
/// later releases must be able to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The provider has accepted it.
    Sent {
        /// The message's receipt.
        receipt: Receipt,
    },
    /// Stored until its scheduled time.
    #[serde(skip)]
    Scheduled {
        /// The message's receipt.
        receipt: Receipt,
        /// Its scheduled time.
        send_at: DateTime<Utc>,
    },
    /// Stored; the gateway retries, so the caller must not.
    Queued {
        /// The message's receipt.
        receipt: Receipt,
        /// Why it could not be sent now.
        failure: Failure,
        /// Attempts that have failed so far.
        retry_count: i32,
        /// When the next attempt is due.
        next_retry_at: DateTime<Utc>,
    },
    /// It will not be sent.
    Rejected {
        /// The message's receipt.
        receipt: Receipt,
        /// Why it failed.
        failure: Failure,
        /// The message had been transmitted when the connection broke, and may have arrived.
        may_have_arrived: bool,
    },
}

impl Outcome {
    /// The message's receipt.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        match self {
            Self::Sent { receipt }
            | Self::Scheduled { receipt, .. }
            | Self::Queued { receipt, .. }
            | Self::Rejected { receipt, .. } => receipt,
        }
    }
}

/// The data that identifies a message from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Its id in the log.
    pub id: LogId,
    /// The mailbox's address.
    pub from: String,
    /// The mailbox's provider.
    pub plugin: Plugin,
    /// The Message-ID header.
    pub message_id: Option<String>,
}

/// The answer to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The outcome of the message.
    pub outcome: Outcome,
    /// The answer was given before, under the same idempotency key.
    pub replayed: bool,
}

/// The outcome of accepting a message.
pub(super) enum Taken {
    /// It was accepted, with this outcome.
    Here(Outcome),
    /// Its idempotency key stands for another message.
    Twin,
    /// The app has changed since the mailbox was chosen.
    Stale,
}
