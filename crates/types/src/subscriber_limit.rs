//! The limits that the operator may set for one subscriber in place of the settings.

use crate::words::words;
use std::ops::RangeInclusive;

words! {
    /// A limit per subscriber.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SubscriberLimit {
        /// Its apps.
        Apps = "apps",
        /// Mailboxes of all its apps, connected or remembered.
        Mailboxes = "mailboxes",
        /// End users of all its apps.
        EndUsers = "end_users",
        /// Scheduled and waiting messages of all its apps.
        WaitingMessages = "waiting_messages",
        /// The bytes of these messages.
        WaitingBytes = "waiting_bytes",
        /// Requests and messages per key and second.
        RequestsPerSecond = "requests_per_second",
    }
}

impl SubscriberLimit {
    /// The setting with the default for all subscribers.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Apps => "limits.apps_per_subscriber",
            Self::Mailboxes => "limits.mailboxes_per_subscriber",
            Self::EndUsers => "limits.end_users_per_subscriber",
            Self::WaitingMessages => "limits.waiting_messages_per_subscriber",
            Self::WaitingBytes => "limits.waiting_bytes_per_subscriber",
            Self::RequestsPerSecond => "limits.requests_per_second",
        }
    }

    /// The permitted values, as for the setting.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<i64> {
        match self {
            Self::Apps | Self::RequestsPerSecond => 1..=1_000_000,
            // Half of them are for bare links, which anyone can write.
            Self::Mailboxes | Self::EndUsers => 2..=100_000_000,
            Self::WaitingMessages => 1..=100_000_000,
            Self::WaitingBytes => 1_024..=1 << 50,
        }
    }
}
