//! Finds a mailbox by its special use, and opens one read-only.

use super::super::response::Response;
use super::super::special_use::{Finder, SpecialUse};
use super::{Connection, ImapError, quoted};

/// A mailbox, opened read-only.
#[derive(Debug, Default)]
pub(in crate::mail::imap) struct Examined {
    /// The number of messages in it.
    pub(in crate::mail::imap) exists: u32,
    pub(in crate::mail::imap) uid_validity: Option<u32>,
    pub(in crate::mail::imap) uid_next: Option<u32>,
}

impl Connection {
    /// The mailbox for a special use; `None` if none can be identified.
    pub(in crate::mail::imap) async fn special_mailbox(
        &mut self,
        wanted: &'static SpecialUse,
    ) -> Result<Option<Vec<u8>>, ImapError> {
        let extended = self.can("SPECIAL-USE").await? && self.can("LIST-EXTENDED").await?;
        // Without the extensions a server may still list these attributes (RFC 6154 §2).
        let command: &[u8] = if extended {
            b"LIST \"\" \"*\" RETURN (SPECIAL-USE)"
        } else {
            b"LIST \"\" \"*\""
        };
        let mut finder = Finder::of(wanted);
        self.run(&[command], |response| {
            if let Response::List(listed) = response {
                finder.consider(listed);
            }
        })
        .await?;
        Ok(finder.name())
    }

    /// Opens a mailbox read-only.
    pub(in crate::mail::imap) async fn examine(
        &mut self,
        mailbox: &[u8],
    ) -> Result<Examined, ImapError> {
        let name = quoted(mailbox).ok_or(ImapError::Unspeakable)?;
        let command = format!("EXAMINE {name}");
        let mut examined = Examined::default();
        self.run(&[command.as_bytes()], |response| match response {
            Response::Exists(count) => examined.exists = count,
            Response::Untagged(status) => {
                examined.uid_validity = status.number("UIDVALIDITY").or(examined.uid_validity);
                examined.uid_next = status.number("UIDNEXT").or(examined.uid_next);
            }
            _ => {}
        })
        .await?;
        Ok(examined)
    }
}
