//! Checks whether a message that had been transmitted when its connection broke has arrived, by searching the
//! mailbox's Sent folder for it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::mailboxes::{Mailbox, MailboxReadError};
use crate::sending::Sending;
use mailgate_providers::mail::reader::ReadError;
use mailgate_providers::mail::sent_copy::{Found, Sought};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::database::outage::trouble;
use mailgate_types::ids::LogId;
use mailgate_types::message_id::is_well_formed;
use mailgate_types::past::Past;

/// Timeout of one query of the Sent folder.
const LONGEST: Duration = Duration::from_mins(1);

/// The pause before a message is searched for again: its mailbox can't be searched at the moment, or it may still
/// arrive.
pub(in crate::sending) const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How much longer than `sending.data_seconds` a provider may take to file a message that it was given.
const FILED_WITHIN: TimeDelta = TimeDelta::minutes(1);

/// The result of searching the mailbox's Sent folder for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Presence {
    /// It is in the folder.
    Sent,
    /// It is missing, and would be there if it had been sent and its provider had finished processing it.
    ConfirmedMissing,
    /// It is not there under the Message-ID that it was sent with, which proves nothing: the provider may have assigned
    /// another, or skip a message that a mail client has already saved there.
    NotFound,
    /// The mailbox can be searched, but not now.
    NotNow,
    /// The mailbox can't be searched.
    Unknowable,
}

impl Sending {
    /// Until when a message that was transmitted by `left_by` at the latest may appear among the sent ones; `None` once
    /// that has certainly passed: if it is missing then, it was not sent.
    pub(in crate::sending) fn may_still_arrive(
        &self,
        left_by: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let data = TimeDelta::from_std(self.settings.data).unwrap_or(TimeDelta::MAX);
        let until = left_by
            .checked_add_signed(data)
            .and_then(|until| until.checked_add_signed(FILED_WITHIN))
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        (Past::by(&self.clock).moment() < until).then_some(until)
    }

    /// Searches the mailbox's Sent folder for a message. An invalid Message-ID proves nothing.
    pub(in crate::sending) async fn look_up(
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
        let sought = Sought { id, message_id };
        let question = |account: MailboxAccess| async move {
            tokio::time::timeout(LONGEST, reader.find_sent(&account, sought))
                .await
                .unwrap_or_else(|_| Err(ReadError::unavailable("the provider took too long")))
        };
        let error = match self.mailboxes.ask_reader(mailbox, question).await {
            Ok(Found::Message) => return Presence::Sent,
            Ok(Found::Nothing) if reader.keeps_sent_mail() => return Presence::ConfirmedMissing,
            Ok(Found::Nothing) => return Presence::NotFound,
            Ok(Found::OtherCopies) => {
                tracing::info!(log_id = %id, "the sent mail has only other copies with a message's Message-ID, which prove nothing");
                return Presence::NotFound;
            }
            Err(error) => error,
        };
        trouble!(warn, error, credential_id = %mailbox.id, "sent mail can't be checked");
        match error {
            MailboxReadError::Read(ReadError::Forbidden(_)) => Presence::Unknowable,
            MailboxReadError::Token(_)
            | MailboxReadError::Read(
                ReadError::TokenRefused(_)
                | ReadError::Unexplained(_)
                | ReadError::Unavailable { .. },
            ) => Presence::NotNow,
        }
    }
}
