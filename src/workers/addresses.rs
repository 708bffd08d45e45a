//! Asks the providers what mailboxes may send as: each once a day, and at once after a sender was refused.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pause;
use super::places::Places;
use crate::mailboxes::{ADDRESS_PLACES, Mailboxes};
use crate::storage::outage::trouble;

/// How often it looks for mailboxes that are due.
const POLL: Duration = Duration::from_secs(1);

/// Asks until `stop`.
pub async fn run(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
    let places = Places::new(ADDRESS_PLACES, tracker, stop.clone());
    loop {
        if let Err(error) = begin(&mailboxes, &places).await {
            trouble!(
                error,
                error,
                "mailboxes whose sender addresses are due can't be read"
            );
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}

/// Begins to ask for as many mailboxes as there are places for.
async fn begin(mailboxes: &Mailboxes, places: &Places) -> Result<(), sqlx::Error> {
    let free = places.free();
    if free == 0 {
        return Ok(());
    }
    for look in mailboxes.claim_addresses(free).await? {
        let mailboxes = mailboxes.clone();
        places.begin(async move { mailboxes.read_addresses(look).await });
    }
    Ok(())
}
