//! The names of the events that a webhook configuration may list.

use crate::words::words;

words! {
    /// An event in the catalogue.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum EventName {
        /// A message was sent.
        EmailSent = "email.sent",
        /// An attempt failed; the gateway will retry.
        EmailFailedTemp = "email.failed_temp",
        /// Sending a message failed permanently.
        EmailFailedPerm = "email.failed_perm",
        /// A message didn't reach a recipient, or is delayed on the way.
        EmailBounced = "email.bounced",
        /// A reply to a message that was sent.
        EmailReply = "email.reply",
        /// A mailbox was connected.
        UserConnected = "user.connected",
        /// A mailbox is no longer connected.
        UserDisconnected = "user.disconnected",
        /// The provider no longer lets the gateway read a mailbox.
        MailboxDegraded = "mailbox.degraded",
        /// The gateway can read the mailbox again.
        MailboxRecovered = "mailbox.recovered",
        /// An app was created.
        AppCreated = "app.created",
        /// An app was deleted.
        AppDeleted = "app.deleted",
        /// An app's send key was renewed.
        SendKeyRenewed = "send_key.renewed",
    }

    /// The text is not the name of an event.
    else UnknownEvent("is no event of the catalogue");
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
