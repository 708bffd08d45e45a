//! The limits that the operator may set for one subscriber in place of the settings.

use std::ops::RangeInclusive;

/// What is limited for each subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberLimit {
    /// Its apps.
    Apps,
    /// Mailboxes of all its apps, connected or remembered.
    Mailboxes,
    /// End users of all its apps.
    EndUsers,
    /// Messages of all its apps that are scheduled, or wait for their next attempt.
    WaitingMessages,
    /// Their bytes.
    WaitingBytes,
    /// Requests and messages of one of its keys in a second.
    RequestsPerSecond,
}

impl SubscriberLimit {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Apps,
        Self::Mailboxes,
        Self::EndUsers,
        Self::WaitingMessages,
        Self::WaitingBytes,
        Self::RequestsPerSecond,
    ];

    /// Its name in JSON and in the audit trail.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apps => "apps",
            Self::Mailboxes => "mailboxes",
            Self::EndUsers => "end_users",
            Self::WaitingMessages => "waiting_messages",
            Self::WaitingBytes => "waiting_bytes",
            Self::RequestsPerSecond => "requests_per_second",
        }
    }

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
