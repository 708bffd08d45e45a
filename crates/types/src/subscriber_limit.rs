//! The limits that the operator may set for one subscriber in place of the settings.

use std::ops::RangeInclusive;

/// A limit per subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberLimit {
    /// Its apps.
    Apps,
    /// Mailboxes of all its apps, connected or remembered.
    Mailboxes,
    /// End users of all its apps.
    EndUsers,
    /// Scheduled and waiting messages of all its apps.
    WaitingMessages,
    /// The bytes of these messages.
    WaitingBytes,
    /// Requests and messages per key and second.
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

    /// The name in JSON and in the audit trail.
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
