//! Retries messages that are due.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::take_up::{NO_ROOM, TakenUp, Tried};
use crate::sending::Sending;
use crate::sending::outcome::after_attempt::AfterAttempt;
use crate::sending::outcome::facts::{Facts, report};
use crate::sending::outcome::verify::LOOK_AGAIN;
use crate::sending::submit::attempt::{Attempted, Outgoing};
use crate::sending::submit::permit::StoredPermit;
use mailgate_providers::mail::transport::{NOT_CONFIRMED, Recipients};
use mailgate_providers::mail::verdict::Verdict;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::spool::{self, Attempt, Claimed, Deferral};

/// The wait of a message whose app may not send at the moment.
const BLOCKED_WAIT: TimeDelta = TimeDelta::hours(1);

/// The wait of a message that this process withheld: its database was unavailable, or its lease not confirmed.
const WITHHELD_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The wait of a message for which there is no room in memory.
const NO_ROOM_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The wait of a message that could not be read from the database.
const UNREADABLE_WAIT: TimeDelta = TimeDelta::minutes(1);

/// The error text of a message that may still arrive.
const MAY_STILL_ARRIVE: &str = "The previous attempt was interrupted, and the provider may still be sending the message: it is looked for in the mailbox's sent mail before it is sent again";

/// The reason why an attempt did not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// Its app's subscription.
    Subscription,
    /// Its mailbox's turn.
    Pace,
    /// Nothing but its next attempt.
    Nothing,
}

impl Sending {
    /// Claims messages that are due, as far as there are places, and starts trying them. Returns how many there were,
    /// so that a caller knows whether to continue immediately.
    ///
    /// # Errors
    ///
    /// The database's error on claiming.
    pub async fn retry_due(&self) -> Result<usize, sqlx::Error> {
        let places = self.retries.free();
        if places.is_empty() {
            return Ok(0);
        }
        let due_by = (self.clock.now(), self.clock.agreed());
        let room = self.retries.room(places.len());
        // A message whose commit got no response may be due while its sender still waits.
        let held = self.held.ids();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_due(&mut connection, self.lease.id(), due_by, &held, &room).await?
        };
        let count = claimed.len();
        for (claimed, place) in claimed.into_iter().zip(places) {
            let (sending, place) = (
                self.clone(),
                place.of(claimed.credential, claimed.subscriber),
            );
            self.tracker.spawn(async move {
                let _place = place;
                sending.retry(claimed).await;
            });
        }
        Ok(count)
    }

    /// Returns once an attempt of a stored message has ended since the last call: there may be a place for the next.
    pub async fn place_freed(&self) {
        self.retries.freed().await;
    }

    /// Makes messages due that wait only for their app's subscription, if it is no longer suspended.
    pub async fn release_waiting(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        spool::release_waiting(&mut connection, self.clock.now()).await
    }

    async fn retry(&self, claimed: Claimed) {
        let _hold = self.held.hold(claimed.id);
        let (started, at) = (std::time::Instant::now(), self.clock.now());
        match self.try_again(&claimed).await {
            Ok(Tried::Attempted(attempted)) => {
                let attempt = Attempt {
                    number: claimed.attempts + 1,
                    at,
                    milliseconds: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
                };
                self.end_attempt(&claimed, attempted, attempt).await;
            }
            Ok(Tried::GivenBack) => self.release(&claimed).await,
            Ok(Tried::Paced(until, why)) => {
                self.postpone(&claimed, why, until, Awaits::Pace).await;
            }
            Ok(Tried::MayStillArrive(until)) => {
                let until = until.max(self.clock.now() + LOOK_AGAIN);
                self.postpone(&claimed, MAY_STILL_ARRIVE, until, Awaits::Nothing)
                    .await;
            }
            Ok(Tried::Withheld) => {
                let until = self.clock.now() + WITHHELD_WAIT;
                self.postpone(&claimed, NOT_CONFIRMED, until, Awaits::Nothing)
                    .await;
            }
            Ok(Tried::NoRoom) => {
                let until = self.clock.now() + NO_ROOM_WAIT;
                self.postpone(&claimed, NO_ROOM, until, Awaits::Nothing)
                    .await;
            }
            Ok(Tried::Blocked(blocked)) => {
                let until = self.clock.now() + BLOCKED_WAIT;
                let why = blocked.to_string();
                self.postpone(&claimed, &why, until, Awaits::Subscription)
                    .await;
            }
            Err(error) => {
                trouble!(error, error, log_id = %claimed.id, "a stored message can't be read; it stays stored");
                let why = "the gateway's database can't be read";
                let until = self.clock.now() + UNREADABLE_WAIT;
                self.postpone(&claimed, why, until, Awaits::Nothing).await;
            }
        }
    }

    async fn try_again(&self, claimed: &Claimed) -> Result<Tried, sqlx::Error> {
        let taken_up = tokio::select! {
            taken_up = self.take_up(claimed) => taken_up?,
            () = self.stop.cancelled() => return Ok(Tried::GivenBack),
        };
        let ready = match taken_up {
            TakenUp::Ready(ready) => ready,
            TakenUp::Done(tried) => return Ok(tried),
        };
        let recipients = Recipients {
            addresses: claimed.recipients.clone(),
            smtputf8: claimed.smtputf8,
        };
        let permit = StoredPermit {
            pool: self.pool.clone(),
            lease: self.lease.clone(),
            clock: self.clock.clone(),
            id: claimed.id,
            due_at: claimed.due_at,
            withheld: AtomicBool::new(false),
        };
        let attempted = self
            .attempt(Outgoing {
                id: claimed.id,
                mailbox: &ready.mailbox,
                recipients: &recipients,
                message: &ready.message,
                message_id: claimed.message_id.as_deref(),
                permit: &permit,
            })
            .await;
        if let Attempted::Known(Verdict::Sent { .. }) = attempted {
            self.file_sent(
                claimed.subscriber,
                &ready.mailbox,
                claimed.id,
                &ready.message,
            );
        }
        if let (Attempted::Known(Verdict::Temporary { .. }), true) =
            (&attempted, permit.was_withheld())
        {
            return Ok(Tried::Withheld);
        }
        Ok(Tried::Attempted(attempted))
    }

    /// Lets another replica take up a message immediately, as if it had not been claimed.
    async fn release(&self, claimed: &Claimed) {
        let given_back = async {
            let mut connection = self.pool.acquire().await?;
            let (gateway, now) = (self.lease.id(), self.clock.now());
            spool::release(&mut connection, gateway, claimed, now, None).await
        };
        if let Err(error) = given_back.await {
            // The process that ends this one's row recovers it.
            trouble!(warn, error, log_id = %claimed.id, "a stored message can't be released");
        }
    }

    async fn end_attempt(&self, claimed: &Claimed, attempted: Attempted, attempt: Attempt) {
        let next = self.after_attempt(attempted, attempt.number, claimed.opened_at);
        let facts = Facts::of(claimed);
        let took = Duration::from_millis(u64::try_from(attempt.milliseconds).unwrap_or_default());
        report(&next, &facts, took);
        match next {
            AfterAttempt::Sent { message_id } => {
                self.close(facts.sent(message_id, Some(attempt))).await;
            }
            AfterAttempt::Failed(failure) => {
                self.close(facts.failed(failure.to_string(), Some(attempt)))
                    .await;
            }
            AfterAttempt::Again {
                failure,
                next_attempt_at,
                outcome_unknown,
            } => {
                let deferral = Deferral {
                    id: claimed.id,
                    attempts: attempt.number,
                    error_message: failure.to_string(),
                    next_attempt_at,
                    left_by: outcome_unknown.then(|| self.clock.now()),
                    awaits_subscription: false,
                    awaits_pace: false,
                    attempt: Some(attempt),
                    due_at: claimed.due_at,
                };
                self.defer_again(&facts, &deferral).await;
            }
        }
    }

    /// Requeues a message whose attempt did not take place.
    async fn postpone(&self, claimed: &Claimed, why: &str, until: DateTime<Utc>, awaits: Awaits) {
        let longest = self.longest(claimed.opened_at);
        let deferral = Deferral {
            id: claimed.id,
            attempts: claimed.attempts,
            error_message: why.to_owned(),
            next_attempt_at: if longest > self.clock.now() {
                until.min(longest)
            } else {
                until
            },
            left_by: self.unknown_since(claimed),
            awaits_subscription: awaits == Awaits::Subscription,
            awaits_pace: awaits == Awaits::Pace,
            attempt: None,
            due_at: claimed.due_at,
        };
        self.defer_again(&Facts::of(claimed), &deferral).await;
    }
}
