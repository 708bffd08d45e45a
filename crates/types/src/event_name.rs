//! The names of the events that a webhook configuration may list.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// An event in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventName {
    /// A message was sent.
    EmailSent,
    /// An attempt failed; the gateway will retry.
    EmailFailedTemp,
    /// Sending a message failed permanently.
    EmailFailedPerm,
    /// A message didn't reach a recipient, or is delayed on the way.
    EmailBounced,
    /// A reply to a message that was sent.
    EmailReply,
    /// A mailbox was connected.
    UserConnected,
    /// A mailbox is no longer connected.
    UserDisconnected,
    /// The provider no longer lets the gateway read a mailbox.
    MailboxDegraded,
    /// The gateway can read the mailbox again.
    MailboxRecovered,
    /// An app was created.
    AppCreated,
    /// An app was deleted.
    AppDeleted,
    /// An app's send key was renewed.
    SendKeyRenewed,
}

/// The text is not the name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no event of the catalogue")]
pub struct UnknownEvent;

impl EventName {
    /// All of them, in the catalogue's order.
    pub const ALL: [Self; 12] = [
        Self::EmailSent,
        Self::EmailFailedTemp,
        Self::EmailFailedPerm,
        Self::EmailBounced,
        Self::EmailReply,
        Self::UserConnected,
        Self::UserDisconnected,
        Self::MailboxDegraded,
        Self::MailboxRecovered,
        Self::AppCreated,
        Self::AppDeleted,
        Self::SendKeyRenewed,
    ];

    /// The name in webhooks, configurations and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EmailSent => "email.sent",
            Self::EmailFailedTemp => "email.failed_temp",
            Self::EmailFailedPerm => "email.failed_perm",
            Self::EmailBounced => "email.bounced",
            Self::EmailReply => "email.reply",
            Self::UserConnected => "user.connected",
            Self::UserDisconnected => "user.disconnected",
            Self::MailboxDegraded => "mailbox.degraded",
            Self::MailboxRecovered => "mailbox.recovered",
            Self::AppCreated => "app.created",
            Self::AppDeleted => "app.deleted",
            Self::SendKeyRenewed => "send_key.renewed",
        }
    }
}

impl Display for EventName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for EventName {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or(UnknownEvent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (position, name) in EventName::ALL.into_iter().enumerate() {
            assert_eq!(name.to_string().parse(), Ok(name));
            assert_eq!(name as usize, position, "{name} is listed once");
        }
        for text in [
            "",
            "test",
            "Email.sent",
            "email.sent ",
            "email.",
            "email_sent",
        ] {
            assert_eq!(text.parse::<EventName>(), Err(UnknownEvent), "{text:?}");
        }
    }
}
