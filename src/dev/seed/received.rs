//! The newest messages, as the sandbox has received them.

use super::SeedError;
use super::mail::{Written, has_arrived, whole};
use mailgate_sandbox::inbox::Inbox;

/// How many.
const RECEIVED: usize = 40;

/// How many of them nobody has opened: the newest.
const UNREAD: usize = 9;

/// Adds them to the sandbox's inbox, the oldest first.
pub(super) async fn add(inbox: &Inbox, written: &[Written]) -> Result<(), SeedError> {
    let arrived: Vec<&Written> = written.iter().filter(|one| has_arrived(one)).collect();
    let newest = arrived.len().saturating_sub(RECEIVED);
    let unread = arrived.len().saturating_sub(UNREAD);
    for (place, one) in arrived.iter().enumerate().skip(newest) {
        let opening = &one.past.opening;
        let (from, to) = (&opening.from_address, &opening.recipients);
        let added = inbox.add(from, from, to, one.ended_at(), whole(&one.bytes));
        let added = added.await?;
        if place < unread {
            inbox.mark_read(&added.id).await?;
        }
    }
    Ok(())
}
