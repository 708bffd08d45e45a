//! Why a message waits in the queue.

use std::str::FromStr;

/// The reason why a message waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitingReason {
    /// It is scheduled for a later time.
    Scheduled,
    /// Its app's subscription is suspended.
    Subscription,
    /// Its mailbox has reached its sending limit.
    MailboxLimit,
    /// The last attempt failed, or could not be made.
    TemporaryFailure,
}

/// The text isn't the name of a reason.
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
