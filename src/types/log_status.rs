//! What a log row says of its message.

/// The state of a logged message; it moves from `FailedTemp` to one of the others, never back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStatus {
    /// The provider took the message.
    Sent,
    /// A passing failure; the gateway tries again.
    FailedTemp,
    /// It will not be sent.
    FailedPerm,
}

impl LogStatus {
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
