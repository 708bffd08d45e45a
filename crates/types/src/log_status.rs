//! The status of a log row's message.

use std::str::FromStr;

/// The error of a message that was cancelled.
pub const CANCELLED: &str = "Cancelled";

/// The status of a logged message; it moves from `FailedTemp` to one of the others, never back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogStatus {
    /// The provider accepted the message.
    Sent,
    /// A temporary failure; the gateway will retry.
    FailedTemp,
    /// A permanent failure.
    FailedPerm,
}

/// The text is not a log status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sent, failed_temp or failed_perm")]
pub struct UnknownLogStatus;

impl LogStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sent, Self::FailedTemp, Self::FailedPerm];

    /// The name in the API contract.
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
