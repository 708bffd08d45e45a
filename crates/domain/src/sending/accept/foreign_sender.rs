//! Whether a message names a sender other than its mailbox.

use super::raw_message::NamedSender;
use crate::mailboxes::Mailbox;
use crate::sending::Sending;

impl Sending {
    /// The first of these that the mailbox may not send as.
    pub(in crate::sending) async fn foreign_sender<'a>(
        &self,
        mailbox: &Mailbox,
        named: &'a [NamedSender],
    ) -> Result<Option<&'a NamedSender>, sqlx::Error> {
        for sender in named {
            let address = sender.address.as_str();
            if !self.mailboxes.may_send_as(mailbox, address).await? {
                return Ok(Some(sender));
            }
        }
        Ok(None)
    }
}
