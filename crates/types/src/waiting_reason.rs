//! What a message waits for in the queue.

use std::str::FromStr;

/// Why a message waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitingReason {
    /// For the time that its sender gave.
    Scheduled,
    /// For its app's subscription, which is suspended.
    Subscription,
    /// For its mailbox's turn.
    MailboxLimit,
    /// For another attempt: the last one failed, or could not take place.
    TemporaryFailure,
}

/// The text is not the name of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be scheduled, subscription, mailbox_limit or temporary_failure")]
pub struct UnknownWaitingReason;

impl WaitingReason {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Scheduled,
        Self::Subscription,
        Self::MailboxLimit,
        Self::TemporaryFailure,
    ];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Subscription => "subscription",
            Self::MailboxLimit => "mailbox_limit",
            Self::TemporaryFailure => "temporary_failure",
        }
    }
}

impl FromStr for WaitingReason {
    type Err = UnknownWaitingReason;

    fn from_str(text: &str) -> Result<Self, UnknownWaitingReason> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or(UnknownWaitingReason)
    }
}
