//! The message that a bounce is about.

use std::collections::BTreeSet;

use sqlx::PgConnection;

use mailgate_bounces::{Bounce, BouncedRecipient};
use mailgate_providers::mail::received::Received;
use mailgate_storage::bounces::{self, Original};
use mailgate_storage::mailboxes::Mailbox;
use mailgate_types::ids::LogId;

/// The mailbox's messages that these bounces may be about.
pub(super) async fn originals(
    connection: &mut PgConnection,
    mailbox: &Mailbox,
    named: &[(&Received, &Bounce)],
) -> Result<Vec<Original>, sqlx::Error> {
    let message_ids: BTreeSet<String> = named
        .iter()
        .flat_map(|(_, bounce)| bounce.message_ids.iter().cloned())
        .collect();
    let message_ids: Vec<String> = message_ids.into_iter().collect();
    let logs: BTreeSet<LogId> = named
        .iter()
        .flat_map(|(_, bounce)| log_ids(bounce))
        .collect();
    let logs: Vec<LogId> = logs.into_iter().collect();
    bounces::originals(connection, mailbox.id, &message_ids, &logs).await
}

/// The message that a bounce is about: the one with the Message-ID that is the most certain, or else with the log id.
/// Of several with the same Message-ID: the one whose log id is named, or that was sent to the recipient, or the
/// latest.
pub(super) fn original_of<'a>(
    bounce: &Bounce,
    recipient: &BouncedRecipient,
    originals: &'a [Original],
) -> Option<&'a Original> {
    let named: Vec<LogId> = log_ids(bounce).collect();
    let by_message_id = bounce.message_ids.iter().find_map(|id| {
        originals
            .iter()
            .filter(|original| original.message_id.as_ref() == Some(id))
            .max_by_key(|original| {
                let is_named = named.contains(&original.log);
                (
                    is_named,
                    original.recipient(&recipient.address).is_some(),
                    original.log,
                )
            })
    });
    by_message_id.or_else(|| {
        named
            .iter()
            .find_map(|log| originals.iter().find(|original| original.log == *log))
    })
}

/// The log ids that a bounce names: in a header of the original, or in a Message-ID of the gateway's own.
fn log_ids(bounce: &Bounce) -> impl Iterator<Item = LogId> {
    let own = bounce.message_ids.iter().filter_map(|id| {
        let (left, _) = id.strip_prefix('<')?.split_once('@')?;
        left.parse().ok()
    });
    let in_headers = bounce.log_ids.iter().filter_map(|id| id.parse().ok());
    in_headers.chain(own)
}
