//! What becomes of a message, as its caller is told.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::providers::mail::verdict::Failure;
use mailgate_types::ids::LogId;
use mailgate_types::plugin::Plugin;

/// What became of a message that the gateway took. It lies under its idempotency key in this form, which later
/// releases must be able to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The provider has it.
    Sent {
        /// Of the message.
        receipt: Receipt,
    },
    /// Stored; the gateway tries again, so the caller must not.
    Queued {
        /// Of the message.
        receipt: Receipt,
        /// Why not now.
        failure: Failure,
        /// Attempts that have failed so far.
        retry_count: i32,
        /// The next attempt.
        next_retry_at: DateTime<Utc>,
    },
    /// It will not be sent.
    Rejected {
        /// Of the message.
        receipt: Receipt,
        /// Why not.
        failure: Failure,
        /// It was out when the connection broke, and may have arrived.
        may_have_arrived: bool,
    },
}

/// What identifies a message from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// In the log.
    pub id: LogId,
    /// The mailbox's address.
    pub from: String,
    /// The mailbox's provider.
    pub plugin: Plugin,
    /// The Message-ID header.
    pub message_id: Option<String>,
}

/// What a caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What became of the message.
    pub outcome: Outcome,
    /// It was told before, under the same idempotency key.
    pub replayed: bool,
}
