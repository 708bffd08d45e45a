//! Searches the opened mailbox.

use std::collections::BTreeSet;

use super::super::response::Response;
use super::{Connection, ImapError, quoted};
use crate::mail::sent_copy::{COPIES, Found, Sought};
use mailgate_types::ids::LOG_ID_HEADER;

/// The part of a search result that is kept.
#[derive(Debug, Clone, Copy)]
pub(in crate::mail::imap) enum Keep {
    /// This many of the oldest ones from a UID on.
    OldestFrom(u32, usize),
    /// This many of the newest ones.
    Newest(usize),
}

impl Connection {
    /// Looks for a message in the opened mailbox.
    pub(in crate::mail::imap) async fn find(
        &mut self,
        sought: Sought<'_>,
    ) -> Result<Found, ImapError> {
        let copies = self.with_message_id(sought.message_id).await?;
        if copies.is_empty() {
            return Ok(Found::Nothing);
        }
        let mut found = Found::OtherCopies;
        self.fetch_fields(&copies, &[LOG_ID_HEADER], |_, headers| {
            if sought.is_headed_by(&headers) {
                found = Found::Message;
            }
        })
        .await?;
        Ok(found)
    }

    /// The newest messages with this Message-ID.
    async fn with_message_id(&mut self, message_id: &str) -> Result<Vec<u32>, ImapError> {
        // An empty one would match every message.
        if message_id.len() < "<a>".len() || message_id.chars().any(char::is_control) {
            return Err(ImapError::Unspeakable);
        }
        let keep = Keep::Newest(COPIES);
        if let Some(id) = quoted(message_id.as_bytes()) {
            let criteria = format!("HEADER Message-ID {id}");
            self.search(&[&criteria], keep).await
        } else {
            let length = message_id.len();
            let criteria = format!("CHARSET UTF-8 HEADER Message-ID {{{length}}}");
            self.search(&[&criteria, message_id], keep).await
        }
    }

    /// The UIDs of the messages that match `criteria`, oldest first; between two of its parts, waits for the server's
    /// continuation.
    pub(in crate::mail::imap) async fn search(
        &mut self,
        criteria: &[&str],
        keep: Keep,
    ) -> Result<Vec<u32>, ImapError> {
        let mut parts: Vec<Vec<u8>> = criteria
            .iter()
            .map(|part| part.as_bytes().to_vec())
            .collect();
        if let Some(first) = parts.first_mut() {
            first.splice(..0, *b"UID SEARCH ");
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut kept = BTreeSet::new();
        self.run(&parts, |response| {
            let Response::Search(uids) = response else {
                return;
            };
            for uid in uids {
                match keep {
                    Keep::OldestFrom(first, count) => {
                        if uid >= first && kept.insert(uid) && kept.len() > count {
                            kept.pop_last();
                        }
                    }
                    Keep::Newest(count) => {
                        if kept.insert(uid) && kept.len() > count {
                            kept.pop_first();
                        }
                    }
                }
            }
        })
        .await?;
        Ok(kept.into_iter().collect())
    }
}
