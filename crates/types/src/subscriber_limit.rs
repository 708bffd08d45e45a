//! The limits that the operator may set for one subscriber in place of the settings.

use crate::words::words;
use std::ops::RangeInclusive;

words! {
    /// What is limited for each subscriber.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SubscriberLimit {
        /// Its apps.
        Apps = "apps",
        /// Mailboxes of all its apps, connected or remembered.
        Mailboxes = "mailboxes",
        /// End users of all its apps.
        EndUsers = "end_users",
        /// Messages of all its apps that are scheduled, or wait for their next attempt.
        WaitingMessages = "waiting_messages",
        /// Their bytes.
        WaitingBytes = "waiting_bytes",
        /// Requests and messages of one of its keys in a second.
        RequestsPerSecond = "requests_per_second",
    }
}

impl SubscriberLimit {
    /// The setting that holds for subscribers without a limit of their own.
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

    /// Its values, as of the setting.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<i64> {
        match self {
            Self::Apps | Self::RequestsPerSecond => 1..=1_000_000,
            // Links that anybody can write have half of them.
            Self::Mailboxes | Self::EndUsers => 2..=100_000_000,
            Self::WaitingMessages => 1..=100_000_000,
            Self::WaitingBytes => 1_024..=1 << 50,
        }
    }
}
