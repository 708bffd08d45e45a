//! What is done for connected mailboxes without being asked: replies are looked for, and unused tokens
//! refreshed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pause;
use crate::mailboxes::{Mailboxes, REPLY_PLACES};
use crate::storage::outage::trouble;

/// How often it looks for mailboxes that are due.
const POLL: Duration = Duration::from_secs(1);

/// How often it looks for unused tokens while there are none.
const IDLE: Duration = Duration::from_mins(1);

/// How often old replies are forgotten.
const FORGET: Duration = Duration::from_hours(1);

/// Looks for replies until `stop`.
pub async fn replies(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(REPLY_PLACES));
    let mut forgot_at: Option<Instant> = None;
    loop {
        if let Err(error) = mailboxes.store_senders().await {
            trouble!(error, error, "mailboxes that have sent can't be noted");
        }
        if let Err(error) = look(&mailboxes, &places, &tracker, &stop).await {
            trouble!(
                error,
                error,
                "mailboxes that are due for a look can't be found"
            );
        }
        if forgot_at.is_none_or(|at| at.elapsed() > FORGET) {
            if let Err(error) = mailboxes.forget_replies().await {
                trouble!(error, error, "old replies can't be forgotten");
            }
            forgot_at = Some(Instant::now());
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}

/// Begins as many looks as there are places for.
async fn look(
    mailboxes: &Mailboxes,
    places: &Arc<Semaphore>,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), sqlx::Error> {
    let free = places.available_permits();
    if free == 0 {
        return Ok(());
    }
    for look in mailboxes.claim_reply_looks(free).await? {
        // Only this loop takes places, so there is one for each.
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            return Ok(());
        };
        let (mailboxes, stop) = (mailboxes.clone(), stop.clone());
        tracker.spawn(async move {
            let _place = place;
            // A look that is cut off leaves its mailbox as it was.
            tokio::select! {
                () = mailboxes.look_for_replies(look) => {}
                () = stop.cancelled() => {}
            }
        });
    }
    Ok(())
}

/// Refreshes unused tokens until `stop`.
pub async fn refresh_idle(mailboxes: Mailboxes, stop: CancellationToken) {
    loop {
        match mailboxes.refresh_idle().await {
            Ok(0) => {}
            Ok(_) if !stop.is_cancelled() => continue,
            Ok(_) => return,
            Err(error) => trouble!(error, error, "unused tokens can't be looked for"),
        }
        if !pause(IDLE, &stop).await {
            return;
        }
    }
}
