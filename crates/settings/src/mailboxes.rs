//! The settings of background work on connected mailboxes.

use std::time::Duration;

use chrono::TimeDelta;

use super::reader::Reader;

/// The settings of background work on connected mailboxes.
#[derive(Debug, Clone)]
pub struct MailboxSettings {
    /// After how long an unused token is refreshed.
    pub refresh_idle: TimeDelta,
    /// The interval between two checks for replies.
    pub replies_every: Duration,
    /// How long after its last message a mailbox is checked.
    pub replies_window: TimeDelta,
    /// Mailboxes per subscriber, connected or remembered.
    pub most_of_subscriber: i64,
    /// End users per subscriber.
    pub most_users_of_subscriber: i64,
}

pub(super) fn read(reader: &mut Reader<'_>) -> MailboxSettings {
    MailboxSettings {
        refresh_idle: TimeDelta::days(reader.number("mailboxes.refresh_idle_days", 1, 365)),
        replies_every: reader.seconds("mailboxes.replies_seconds"),
        replies_window: TimeDelta::days(reader.number("mailboxes.replies_days", 1, 365)),
        most_of_subscriber: reader.number("limits.mailboxes_per_subscriber", 2, 100_000_000),
        most_users_of_subscriber: reader.number("limits.end_users_per_subscriber", 2, 100_000_000),
    }
}
