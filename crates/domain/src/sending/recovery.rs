//! Recovery: messages whose process or task died are finished or returned to the queue. Processes with an expired lease
//! are ended in [`lease`]; `src/workers/spool.rs` polls for what they left.

pub(crate) mod late_results;
pub(crate) mod lease;

use std::collections::HashSet;
use std::sync::PoisonError;

use chrono::{DateTime, TimeDelta, Utc};

use super::Sending;
use super::journal::ending::Ending;
use super::outcome::after_attempt::UNVERIFIABLE;
use super::outcome::facts::Facts;
use super::outcome::verify::{LOOK_AGAIN, Presence};
use super::queue::take_up::CUT_OFF;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::spool::Claimed;
use mailgate_storage::{gateways, mailboxes, spool};
use mailgate_types::ids::LogId;
use mailgate_types::past::Past;

/// Abandoned messages claimed together.
const ROUND: i64 = 64;

/// Mailboxes that one process searches concurrently for messages of dead processes. They don't share the places of the
/// queue: a provider that takes a minute for each search would block it.
pub(super) const LOOKS: usize = 32;

/// How long to keep searching for a message with an unknown outcome before it counts as failed.
const LOOKED_UP: TimeDelta = TimeDelta::days(1);

/// The error text of a message that died with its process and is not in the Sent folder.
const NOT_SENT: &str =
    "The gateway stopped before the message was sent, and before its sender got an answer";

/// The error texts of messages that were taken over without their bytes.
pub(super) fn cut_off_errors() -> [String; 2] {
    [NOT_SENT.to_owned(), unconfirmed()]
}

fn unconfirmed() -> String {
    format!("{UNVERIFIABLE} ({CUT_OFF})")
}

impl Sending {
    /// Recovers messages of processes that have ended: finishes them or returns them to the queue. Returns how many
    /// there were.
    pub async fn take_over(&self) -> Result<usize, sqlx::Error> {
        let gateway = self.lease.id();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            let ended = gateways::ended(&mut connection).await?;
            if ended.is_empty() {
                return Ok(0);
            }
            let now = self.clock.now();
            match mailboxes::refresh_again(&mut connection, &ended, now).await {
                Ok(0) => {}
                Ok(_) => self.refresh_again(),
                // The messages don't wait for it; the leases expire.
                Err(error) => trouble!(
                    warn,
                    error,
                    "refreshes of ended processes can't be taken over"
                ),
            }
            let claimed = spool::claim_of_ended(&mut connection, gateway, &ended, ROUND).await?;
            if claimed.is_empty() {
                gateways::forget(&mut connection, &ended).await?;
            }
            claimed
        };
        self.take_up_left(claimed).await
    }

    /// Repeats the token refreshes that died with their process.
    fn refresh_again(&self) {
        let mailboxes = self.mailboxes.clone();
        self.tracker.spawn(async move {
            if let Err(error) = mailboxes.refresh_idle().await {
                // They stay due.
                trouble!(error, error, "tokens that are due can't be read");
            }
        });
    }

    /// As [`Sending::take_over`], for messages that no process owns.
    pub async fn recover_lapsed(&self) -> Result<usize, sqlx::Error> {
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_lapsed(&mut connection, self.lease.id(), ROUND).await?
        };
        self.take_up_left(claimed).await
    }

    /// As [`Sending::take_over`], for messages that this process owns but was twice seen not to be working on: their
    /// task has panicked.
    pub async fn recover_forgotten(&self) -> Result<usize, sqlx::Error> {
        let before = self.held.ids();
        let mut claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::in_hand_beside(&mut connection, self.lease.id(), &before).await?
        };
        let held: HashSet<LogId> = self.held.ids().into_iter().collect();
        claimed.retain(|claimed| !held.contains(&claimed.id));
        let seen = claimed.iter().map(|claimed| claimed.id).collect();
        let seen_before = {
            let mut forgotten = self
                .forgotten
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *forgotten, seen)
        };
        claimed.retain(|claimed| seen_before.contains(&claimed.id));
        self.take_up_left(claimed).await
    }

    async fn take_up_left(&self, abandoned: Vec<Claimed>) -> Result<usize, sqlx::Error> {
        let count = abandoned.len();
        // Hold all of them from now on, since some wait long for a place.
        let holds: Vec<_> = (abandoned.iter())
            .map(|claimed| self.held.hold(claimed.id))
            .collect();
        for (claimed, hold) in abandoned.into_iter().zip(holds) {
            let stored = {
                let mut connection = self.pool.acquire().await?;
                let stored = spool::has_chunks(&mut connection, claimed.id).await?;
                if stored {
                    let (gateway, now) = (self.lease.id(), self.clock.now());
                    spool::release(&mut connection, gateway, &claimed, now, Some(now)).await?;
                }
                stored
            };
            tracing::warn!(log_id = %claimed.id, stored, "a message was left behind by a process that died");
            if !stored {
                let sending = self.clone();
                self.tracker.spawn(async move {
                    let _hold = hold;
                    // The process that takes over from this one will recover it.
                    let place = sending
                        .stop
                        .run_until_cancelled(sending.looks.acquire())
                        .await;
                    if place.is_some() {
                        sending.end_unanswered(claimed).await;
                    }
                });
            }
        }
        Ok(count)
    }

    /// Ends a message whose bytes died with their process: its sender got no answer, and it can't be sent again. Its
    /// absence proves something only after its provider must have finished processing it; until then it is searched
    /// for.
    async fn end_unanswered(&self, claimed: Claimed) {
        let left_by = self.left_by(&claimed);
        // Before the search, which takes time.
        let may_arrive = self.may_still_arrive(left_by).is_some();
        let presence = match self.mailboxes.active(claimed.credential).await {
            Ok(Some(mailbox)) => {
                let message_id = claimed.message_id.as_deref();
                self.look_up(&mailbox, claimed.id, message_id).await
            }
            Ok(None) => Presence::Unknowable,
            Err(error) => {
                trouble!(error, error, log_id = %claimed.id, "a mailbox can't be read");
                Presence::NotNow
            }
        };
        let facts = Facts::of(&claimed);
        let ending = match presence {
            Presence::Sent => facts.sent(None, None),
            Presence::ConfirmedMissing | Presence::NotFound if may_arrive => {
                self.look_again(claimed.id, left_by).await;
                return;
            }
            Presence::ConfirmedMissing => Ending {
                freed_key: claimed.key,
                ..facts.failed(NOT_SENT.to_owned(), None)
            },
            Presence::NotNow
                if Past::by(&self.clock).before(LOOKED_UP).moment() < claimed.opened_at =>
            {
                self.look_again(claimed.id, left_by).await;
                return;
            }
            Presence::NotNow | Presence::NotFound | Presence::Unknowable => {
                facts.failed(unconfirmed(), None)
            }
        };
        self.close(ending).await;
    }

    /// Releases a message until its next search.
    async fn look_again(&self, id: LogId, left_by: DateTime<Utc>) {
        let let_go = async {
            let mut connection = self.pool.acquire().await?;
            let gateway = self.lease.id();
            spool::look_again(&mut connection, gateway, id, left_by, LOOK_AGAIN).await
        };
        if let Err(error) = let_go.await {
            // It will be found as owned by this process but not worked on.
            trouble!(warn, error, log_id = %id, "a message can't be released");
        }
    }
}
