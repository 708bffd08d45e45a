//! One message of a page: its headers, or all of it if the headers aren't enough.

use super::entry::{Entry, header_block};
use super::refusal::{is_final, nonsense, refused, unreachable};
use crate::mail::graph::Graph;
use crate::mail::graph::api::{GraphResponse, encoded};
use crate::mail::reader::ReadError;
use crate::mail::received::{BOUNCE_BYTES, Received};
use crate::mail::transport::MailboxAccess;

/// The fields requested of each message. The headers need Mail.Read; Mail.ReadBasic isn't enough.
pub(super) const FIELDS: &str =
    "internetMessageId,subject,from,toRecipients,internetMessageHeaders,receivedDateTime";

impl Graph {
    /// A change doesn't always include the headers; those of a message deleted meanwhile are left out. If they are
    /// missing for another reason, the fields are used: enough to recognize a bounce, but not a reply.
    pub(super) async fn with_headers(
        &self,
        account: &MailboxAccess,
        entry: Entry,
    ) -> Result<Option<Entry>, ReadError> {
        if entry.internet_message_headers.is_some() || entry.id.is_empty() {
            return Ok(Some(entry));
        }
        let path = format!("/messages/{}?$select={FIELDS}", encoded(&entry.id));
        let patience = self.one_call();
        let answer = self.look(account, &self.api.address(&path), patience).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        match answer.status {
            200 => serde_json::from_slice(&answer.body)
                .map(Some)
                .map_err(|_| nonsense()),
            404 | 410 => Ok(None),
            _ if is_final(&answer) => {
                note(account, &entry, &answer);
                Ok(Some(entry))
            }
            _ => Err(refused(&answer)),
        }
    }

    /// A message, and whether it was fetched whole.
    pub(super) async fn received(
        &self,
        account: &MailboxAccess,
        entry: &Entry,
    ) -> Result<(Received, bool), ReadError> {
        let headers = header_block(entry);
        let mut received = Received::parse(&headers);
        if entry.id.is_empty() || !received.is_read_whole(&headers) {
            return Ok((received, false));
        }
        let path = format!("/messages/{}/$value", encoded(&entry.id));
        let address = self.api.address(&path);
        let patience = self.one_call();
        let answer = self
            .api
            .beginning(account, &address, BOUNCE_BYTES, patience)
            .await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        match answer.status {
            200 => received.read_whole(&answer.body),
            _ if is_final(&answer) => note(account, entry, &answer),
            _ => return Err(refused(&answer)),
        }
        Ok((received, true))
    }
}

fn note(account: &MailboxAccess, entry: &Entry, answer: &GraphResponse) {
    tracing::info!(credential_id = %account.credential, mailbox_message = entry.id, error = %refused(answer), "a message in a mailbox can't be read");
}
