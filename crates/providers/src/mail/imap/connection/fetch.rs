//! Fetches messages, or parts of them, from the opened mailbox.

use std::collections::BTreeMap;

use super::super::response::Response;
use super::{Connection, ImapError};
use crate::mail::received::{BOUNCE_BYTES, Received, header_names};

/// The headers of a message.
#[derive(Debug)]
pub(in crate::mail::imap) struct Headers {
    pub(in crate::mail::imap) received: Received,
    /// It should be fetched whole.
    pub(in crate::mail::imap) is_read_whole: bool,
}

impl Connection {
    /// The headers of each of these messages. Messages deleted meanwhile are left out.
    pub(in crate::mail::imap) async fn headers(
        &mut self,
        uids: &[u32],
    ) -> Result<BTreeMap<u32, Headers>, ImapError> {
        let mut messages = BTreeMap::new();
        let names: Vec<&str> = header_names().collect();
        self.fetch_fields(uids, &names, |uid, headers| {
            let received = Received::parse(&headers);
            let is_read_whole = received.is_read_whole(&headers);
            let headers = Headers {
                received,
                is_read_whole,
            };
            messages.insert(uid, headers);
        })
        .await?;
        Ok(messages)
    }

    /// Some header fields of each of these messages.
    pub(super) async fn fetch_fields(
        &mut self,
        uids: &[u32],
        names: &[&str],
        mut each: impl FnMut(u32, Vec<u8>),
    ) -> Result<(), ImapError> {
        let set: Vec<String> = uids.iter().map(u32::to_string).collect();
        let command = format!(
            "UID FETCH {} (UID BODY.PEEK[HEADER.FIELDS ({})])",
            set.join(","),
            names.join(" ")
        );
        self.run(&[command.as_bytes()], |response| {
            if let Response::Fetch(fetched) = response
                && let (Some(uid), Some(mut headers)) = (fetched.uid, fetched.section)
                && uids.contains(&uid)
            {
                // A truncated header block has no end.
                headers.extend_from_slice(b"\r\n\r\n");
                each(uid, headers);
            }
        })
        .await
    }

    /// The beginning of a message; `None` if it was deleted meanwhile, or the server can't read it.
    pub(in crate::mail::imap) async fn beginning(
        &mut self,
        uid: u32,
    ) -> Result<Option<Vec<u8>>, ImapError> {
        let command = format!("UID FETCH {uid} (UID BODY.PEEK[]<0.{BOUNCE_BYTES}>)");
        let mut message = None;
        let parts = [command.as_bytes()];
        let fetched = self.run(&parts, |response| {
            if let Response::Fetch(fetched) = response
                && fetched.uid == Some(uid)
            {
                message = fetched.section;
            }
        });
        match fetched.await {
            // A damaged message stays damaged, and must not block later ones.
            Err(ImapError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(message),
        }
    }
}
