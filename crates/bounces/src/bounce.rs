//! What is read from a bounce.

use mailgate_types::bounce_type::BounceType;

/// Recipients that are kept.
pub const RECIPIENTS: usize = 100;

/// What a bounce says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounce {
    /// Message-IDs that the original may have, angle brackets included, the most certain one first. Bounded and
    /// deduplicated.
    pub message_ids: Vec<String>,
    /// The log ids (`log_…`) that the returned headers bear.
    pub log_ids: Vec<String>,
    /// The recipients that it is about, each once. Bounded, never empty.
    pub recipients: Vec<BouncedRecipient>,
}

/// A recipient that failed, or waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BouncedRecipient {
    /// The address as the message was sent to it, as far as the bounce says.
    pub address: String,
    /// Whether it is final.
    pub bounce_type: BounceType,
    /// RFC 3463, like `5.1.1`.
    pub status: Option<String>,
    /// The server's words: one line of bounded length, without control characters.
    pub diagnostic: Option<String>,
}
