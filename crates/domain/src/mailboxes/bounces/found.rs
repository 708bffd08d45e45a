//! The bounces that a notification reports, of messages that the mailbox has sent.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::original::original_of;
use mailgate_bounces::Bounce;
use mailgate_providers::mail::received::Received;
use mailgate_storage::bounces::{NewBounce, Original};
use mailgate_storage::mailboxes::Mailbox;
use mailgate_types::event::{Emission, Event};
use mailgate_types::ids::AppId;
use mailgate_types::moment::iso8601;
use mailgate_types::one_line::one_line;

/// Recipients of one notification that are considered.
pub(super) const RECIPIENTS: usize = 100;

/// Longest stored address and diagnostic text, in bytes.
pub(super) const ADDRESS_BYTES: usize = 320;
pub(super) const DIAGNOSTIC_BYTES: usize = 1_000;

/// Longest RFC 3463 status code, which has three numbers: `5.123.456`.
const STATUS_BYTES: usize = 9;

/// A bounce of one of the mailbox's messages.
pub(super) struct Found<'a> {
    pub(super) bounce: NewBounce,
    pub(super) original: &'a Original,
}

impl Found<'_> {
    /// The event that reports it.
    pub(super) fn emission(&self, app: AppId, mailbox: &Mailbox, now: DateTime<Utc>) -> Emission {
        let (bounce, original) = (&self.bounce, self.original);
        let event = Event::EmailBounced {
            log_id: original.log,
            message_id: original.message_id.clone(),
            from_address: original.from_address.clone(),
            to_address: bounce.recipient.clone(),
            subject: original.subject.clone(),
            plugin: mailbox.plugin,
            bounce_type: bounce.bounce_type,
            status: bounce.status.clone(),
            diagnostic: bounce.diagnostic.clone(),
            bounced_at: iso8601(now),
            metadata: original.metadata.clone(),
        };
        Emission {
            app,
            event,
            log: Some(original.log),
        }
    }
}

/// The bounces of one notification: none, if it is about no message of the mailbox.
pub(super) fn found<'a>(
    received: &Received,
    bounce: &Bounce,
    originals: &'a [Original],
) -> impl Iterator<Item = Found<'a>> {
    let notification = key_of(received, bounce);
    let found: Vec<Found<'a>> = (bounce.recipients.iter().take(RECIPIENTS))
        .filter_map(|recipient| {
            let original = original_of(bounce, recipient, originals)?;
            let address = one_line(&recipient.address, ADDRESS_BYTES);
            let mut key = Sha256::new();
            key.update(&notification);
            key.update(address.to_ascii_lowercase().as_bytes());
            let bounce = NewBounce {
                key: key.finalize().to_vec(),
                log: original.log,
                recipient: (original.recipient(&address))
                    .map_or_else(|| address.clone(), str::to_owned),
                bounce_type: recipient.bounce_type,
                status: recipient.status.clone().filter(|status| is_status(status)),
                diagnostic: (recipient.diagnostic.as_deref())
                    .map(|text| one_line(text, DIAGNOSTIC_BYTES)),
            };
            Some(Found { bounce, original })
        })
        .collect();
    found.into_iter()
}

/// A notification's deduplication key: its Message-ID, or a digest of its contents.
pub(super) fn key_of(received: &Received, bounce: &Bounce) -> Vec<u8> {
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update(part.as_bytes());
        digest.update([0]);
    };
    if let Some(id) = &received.message_id {
        add(id);
    } else {
        add("");
        add(&received.from);
        add(&received.subject);
        bounce.message_ids.iter().for_each(|id| add(id));
        bounce.log_ids.iter().for_each(|id| add(id));
        for recipient in &bounce.recipients {
            add(&recipient.address);
            add(recipient.bounce_type.as_str());
            add(recipient.status.as_deref().unwrap_or_default());
            add(recipient.diagnostic.as_deref().unwrap_or_default());
        }
    }
    digest.finalize().to_vec()
}

/// Whether it has the form of RFC 3463.
pub(super) fn is_status(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    text.len() <= STATUS_BYTES
        && parts.len() == 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}
