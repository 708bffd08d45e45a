//! The result of reading a bounce.

use mailgate_types::bounce_type::BounceType;

/// Maximum number of recipients kept.
pub const RECIPIENTS: usize = 100;

/// A parsed bounce.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounce {
    /// Possible Message-IDs of the original, angle brackets included, the most certain one first. Bounded and
    /// deduplicated.
    pub message_ids: Vec<String>,
    /// The log ids (`log_…`) in the returned headers.
    pub log_ids: Vec<String>,
    /// The recipients concerned, deduplicated. Bounded, never empty.
    pub recipients: Vec<BouncedRecipient>,
}

/// A recipient with a failed or delayed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BouncedRecipient {
    /// The address that the message was sent to, as far as the bounce tells.
    pub address: String,
    /// Whether the failure is permanent.
    pub bounce_type: BounceType,
    /// RFC 3463, like `5.1.1`.
    pub status: Option<String>,
    /// The server's diagnostic text: one line of bounded length, without control characters.
    pub diagnostic: Option<String>,
}
