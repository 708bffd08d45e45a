//! Polls the mailboxes that are due for a check for replies and bounces.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pause;
use super::places::Places;
use mailgate_domain::mailboxes::{Mailboxes, REPLY_PLACES};
use mailgate_storage::database::outage::trouble;

/// How often to poll for mailboxes that are due.
const POLL: Duration = Duration::from_secs(1);

/// How often to mark messages that had bounced before they were recorded as sent.
const MARK: Duration = Duration::from_mins(1);

/// How often old replies are deleted.
const FORGET: Duration = Duration::from_hours(1);

/// Checks for replies and bounces until `stop`.
pub async fn run(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
    let places = Places::new(REPLY_PLACES, tracker, stop.clone());
    let mut forgot_at: Option<Instant> = None;
    let mut marked_at: Option<Instant> = None;
    loop {
        if let Err(error) = mailboxes.store_senders().await {
            trouble!(error, error, "mailboxes that have sent can't be recorded");
        }
        if let Err(error) = look(&mailboxes, &places).await {
            trouble!(error, error, "mailboxes due for a check can't be read");
        }
        if marked_at.is_none_or(|at| at.elapsed() > MARK) {
            if let Err(error) = mailboxes.mark_bounced().await {
                trouble!(error, error, "messages that had bounced can't be marked");
            }
            marked_at = Some(Instant::now());
        }
        if forgot_at.is_none_or(|at| at.elapsed() > FORGET) {
            if let Err(error) = mailboxes.forget_replies().await {
                trouble!(error, error, "old replies can't be removed");
            }
            forgot_at = Some(Instant::now());
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}

/// Starts as many checks as there are slots for.
async fn look(mailboxes: &Mailboxes, places: &Places) -> Result<(), sqlx::Error> {
    let free = places.free();
    if free == 0 {
        return Ok(());
    }
    for look in mailboxes.claim_reply_looks(free).await? {
        let mailboxes = mailboxes.clone();
        places.begin(async move { mailboxes.look_for_replies(look).await });
    }
    Ok(())
}
