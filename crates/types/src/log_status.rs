//! What a log row says of its message.

use std::str::FromStr;

/// The state of a logged message; it moves from `FailedTemp` to one of the others, never back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogStatus {
    /// The provider took the message.
    Sent,
    /// A passing failure; the gateway tries again.
    FailedTemp,
    /// It will not be sent.
    FailedPerm,
}

/// The text is no status of a log row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sent, failed_temp or failed_perm")]
pub struct UnknownLogStatus;

impl LogStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sent, Self::FailedTemp, Self::FailedPerm];

    /// The word of the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::FailedTemp => "failed_temp",
            Self::FailedPerm => "failed_perm",
        }
    }
}

impl FromStr for LogStatus {
    type Err = UnknownLogStatus;

    fn from_str(text: &str) -> Result<Self, UnknownLogStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or(UnknownLogStatus)
    }
}
