//! The settings of what is done for connected mailboxes without being asked.

use std::time::Duration;

use chrono::TimeDelta;

use super::reader::Reader;

/// What is done for connected mailboxes without being asked.
#[derive(Debug, Clone)]
pub struct MailboxSettings {
    /// After how long an unused token is refreshed.
    pub refresh_idle: TimeDelta,
    /// The time between two looks for replies.
    pub replies_every: Duration,
    /// How long after its last message a mailbox is looked into.
    pub replies_window: TimeDelta,
}

pub(super) fn read(reader: &mut Reader<'_>) -> MailboxSettings {
    MailboxSettings {
        refresh_idle: TimeDelta::days(reader.number("mailboxes.refresh_idle_days", 1, 365)),
        replies_every: reader.seconds("mailboxes.replies_seconds"),
        replies_window: TimeDelta::days(reader.number("mailboxes.replies_days", 1, 365)),
    }
}
