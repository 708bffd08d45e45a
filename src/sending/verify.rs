//! Checks whether a message that had been transmitted when its connection broke has arrived, by searching the
//! mailbox's Sent folder for its Message-ID.

use std::time::Duration;

use super::Sending;
use crate::mailboxes::{Mailbox, MailboxReadError};
use crate::providers::mail::reader::ReadError;
use crate::providers::mail::transport::MailboxAccess;
use crate::storage::email_logs;
use crate::storage::outage::trouble;
use mailgate_types::ids::LogId;
use mailgate_types::message_id::is_well_formed;

/// Timeout of one query of the Sent folder.
const LONGEST: Duration = Duration::from_mins(1);

/// What the mailbox's Sent folder says about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is in the folder.
    Sent,
    /// It is missing, and would be there if it had been sent.
    ConfirmedMissing,
    /// It is not there under the Message-ID that it was sent with; the provider may have assigned another.
    NotFound,
    /// The mailbox can be searched, but not now.
    NotNow,
    /// The mailbox can't be searched.
    Unknowable,
}

impl Sending {
    /// Whether a message found by its Message-ID can only be this one: [`Presence::Sent`] if so.
    async fn whose(&self, mailbox: &Mailbox, id: LogId, message_id: &str) -> Presence {
        let asked = async {
            let mut connection = self.pool.acquire().await?;
            email_logs::has_twin(&mut connection, mailbox.id, message_id, id).await
        };
        match asked.await {
            Ok(false) => Presence::Sent,
            Ok(true) => {
                tracing::warn!(log_id = %id, "another message of the mailbox has the same Message-ID, so it is unclear which of them was found");
                Presence::Unknowable
            }
            Err(error) => {
                trouble!(warn, error, log_id = %id, "other messages of a mailbox can't be searched");
                Presence::NotNow
            }
        }
    }

    /// Searches the mailbox's Sent folder for a message. An invalid Message-ID proves nothing, and a match is this
    /// message only if no other message has the same Message-ID.
    pub(super) async fn look_up(
        &self,
        mailbox: &Mailbox,
        id: LogId,
        message_id: Option<&str>,
    ) -> Presence {
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        let message_id = message_id.filter(|id| is_well_formed(id));
        let (Some(reader), Some(message_id)) = (reader, message_id) else {
            return Presence::Unknowable;
        };
        let question = |account: MailboxAccess| async move {
            tokio::time::timeout(LONGEST, reader.find_sent(&account, message_id))
                .await
                .unwrap_or_else(|_| Err(ReadError::unavailable("the provider took too long")))
        };
        let error = match self.mailboxes.ask_reader(mailbox, question).await {
            Ok(true) => return self.whose(mailbox, id, message_id).await,
            Ok(false) if reader.keeps_sent_mail() => return Presence::ConfirmedMissing,
            Ok(false) => return Presence::NotFound,
            Err(error) => error,
        };
        trouble!(warn, error, credential_id = %mailbox.id, "sent mail can't be checked");
        match error {
            MailboxReadError::Read(ReadError::Forbidden(_)) => Presence::Unknowable,
            MailboxReadError::Token(_)
            | MailboxReadError::Read(ReadError::TokenRefused(_) | ReadError::Unavailable { .. }) => {
                Presence::NotNow
            }
        }
    }
}
