//! Whether a bounce is final.

use serde::Serialize;

/// Whether delivery has failed permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BounceType {
    /// The message won't arrive.
    Permanent,
    /// The message is delayed, and may still arrive.
    Temporary,
}

impl BounceType {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Permanent, Self::Temporary];

    /// The name in events, answers and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Temporary => "temporary",
        }
    }
}
