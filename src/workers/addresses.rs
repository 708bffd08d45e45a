//! Asks the providers what mailboxes may send as: each once a day, and at once after a sender was refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pause;
use crate::mailboxes::{ADDRESS_PLACES, Mailboxes};
use crate::storage::outage::trouble;

/// How often it looks for mailboxes that are due.
const POLL: Duration = Duration::from_secs(1);

/// Asks until `stop`.
pub async fn run(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(ADDRESS_PLACES));
    loop {
        if let Err(error) = begin(&mailboxes, &places, &tracker, &stop).await {
            trouble!(
                error,
                error,
                "mailboxes whose addresses are due can't be found"
            );
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}

/// Begins to ask for as many mailboxes as there are places for.
async fn begin(
    mailboxes: &Mailboxes,
    places: &Arc<Semaphore>,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), sqlx::Error> {
    let free = places.available_permits();
    if free == 0 {
        return Ok(());
    }
    for look in mailboxes.claim_addresses(free).await? {
        // Only this loop takes places, so there is one for each.
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            return Ok(());
        };
        let (mailboxes, stop) = (mailboxes.clone(), stop.clone());
        tracker.spawn(async move {
            let _place = place;
            // One that is cut off is due again when its lease has lapsed.
            tokio::select! {
                () = mailboxes.read_addresses(look) => {}
                () = stop.cancelled() => {}
            }
        });
    }
    Ok(())
}
