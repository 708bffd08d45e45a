//! Retries messages that are due.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Sending;
use super::after_attempt::Settled;
use super::attempt::{Attempted, Outgoing};
use super::budget::{Holder, Share};
use super::facts::{Facts, report};
use super::gate::{Blocked, admit};
use super::leaving::{NOT_CONFIRMED, StoredLeaves};
use super::pace::{Asker, Pace};
use super::retry_places::PER_MAILBOX;
use super::verify::Presence;
use crate::accounts::ShowError;
use crate::mailboxes::Mailbox;
use crate::providers::mail::transport::Recipients;
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::storage::outage::trouble;
use crate::storage::spool::{Attempt, Claimed, Deferral, Room};
use crate::storage::{apps, spool};
use mailgate_types::message::Message;

/// How long a message waits whose app may not send at the moment.
const BLOCKED_WAIT: TimeDelta = TimeDelta::hours(1);

/// How long a message waits that this process withheld: its database was unavailable, or its lease not confirmed.
const WITHHELD_WAIT: TimeDelta = TimeDelta::seconds(5);

/// How long a message waits that could not be read from the database.
const UNREADABLE_WAIT: TimeDelta = TimeDelta::minutes(1);

/// The error text of a message whose submission was interrupted.
pub(super) const CUT_OFF: &str =
    "the gateway stopped, or the connection broke, while the message was being submitted";

/// The error text of a scheduled message whose send key was renewed.
const KEY_ENDED: &str = "The send key that the message was scheduled with has been renewed, deleted or restricted, or has expired";

/// The error text of a message that was never sent because of what it waited for.
const TOO_OLD: &str = "The message has waited for the maximum time";

/// The outcome of taking up a stored message.
enum Tried {
    Attempted(Attempted),
    /// Nothing was sent: the app may not send at the moment.
    Blocked(Blocked),
    /// Nothing was sent: the mailbox has reached its rate limit.
    Paced(DateTime<Utc>, &'static str),
    /// Nothing was sent: it can't be ruled out that another process has the message.
    Withheld,
    /// Nothing was sent: the process is shutting down.
    GivenBack,
}

/// What a message waits for whose attempt did not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// Its app's subscription.
    Subscription,
    /// Its mailbox's turn.
    Pace,
    /// Nothing but its next attempt.
    Nothing,
}

/// How far a message got before its submission.
enum TakenUp {
    /// Ready to be sent, with its share of the budget.
    Ready(Box<Mailbox>, Message, Share),
    /// Not to be sent for now.
    Done(Tried),
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
        let room = Room {
            messages: i64::try_from(places.len()).unwrap_or(i64::MAX),
            per_mailbox: PER_MAILBOX.into(),
            taken: self.retries.taken(),
        };
        // A message whose commit got no answer may be due while its sender still waits.
        let held = self.held.ids();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_due(&mut connection, self.lease.id(), due_by, &held, &room).await?
        };
        let count = claimed.len();
        for (claimed, place) in claimed.into_iter().zip(places) {
            let (sending, place) = (self.clone(), place.of(claimed.credential));
            self.tracker.spawn(async move {
                let _place = place;
                sending.retry(claimed).await;
            });
        }
        Ok(count)
    }

    /// Returns when an attempt of a stored message has ended since the last call: there may be a place for the next.
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
            Ok(Tried::Withheld) => {
                let until = self.clock.now() + WITHHELD_WAIT;
                self.postpone(&claimed, NOT_CONFIRMED, until, Awaits::Nothing)
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
        let (mailbox, message, _share) = match taken_up {
            TakenUp::Ready(mailbox, message, share) => (mailbox, message, share),
            TakenUp::Done(tried) => return Ok(tried),
        };
        let recipients = Recipients {
            addresses: claimed.recipients.clone(),
            smtputf8: claimed.smtputf8,
        };
        let leave = StoredLeaves {
            pool: self.pool.clone(),
            lease: self.lease.clone(),
            id: claimed.id,
            due_at: claimed.due_at,
            withheld: AtomicBool::new(false),
        };
        let attempted = self
            .attempt(Outgoing {
                id: claimed.id,
                mailbox: &mailbox,
                recipients: &recipients,
                message: &message,
                message_id: claimed.message_id.as_deref(),
                leave: &leave,
            })
            .await;
        if let (Attempted::Known(Verdict::Temporary { .. }), true) =
            (&attempted, leave.was_withheld())
        {
            return Ok(Tried::Withheld);
        }
        Ok(Tried::Attempted(attempted))
    }

    /// Everything before the submission; it may be cancelled at any moment.
    async fn take_up(&self, claimed: &Claimed) -> Result<TakenUp, sqlx::Error> {
        let done = |tried| Ok(TakenUp::Done(tried));
        let told = |verdict| done(Tried::Attempted(Attempted::Known(verdict)));
        let failed = |text: &str| told(Verdict::Permanent(Failure::own(text)));
        let is_too_old = self.is_too_old(claimed.opened_at);
        let status = {
            let mut connection = self.pool.acquire().await?;
            apps::subscription_status(&mut connection, claimed.app).await?
        };
        let Some(status) = status else {
            return failed("The app was deleted");
        };
        match admit(status) {
            Ok(()) => {}
            Err(blocked @ Blocked::Suspended(_)) if is_too_old => {
                return failed(&format!("{TOO_OLD}: {blocked}"));
            }
            Err(blocked @ Blocked::Suspended(_)) => return done(Tried::Blocked(blocked)),
            Err(blocked @ Blocked::Ended) => return failed(&blocked.to_string()),
        }
        let Some(mailbox) = self.mailboxes.active(claimed.credential).await? else {
            return failed("The mailbox is no longer connected");
        };
        let message_id = claimed.message_id.as_deref();
        if claimed.outcome_unknown {
            match self.look_up(&mailbox, claimed.id, message_id).await {
                Presence::Sent => return told(Verdict::sent()),
                Presence::ConfirmedMissing => {}
                Presence::NotNow => {
                    let why =
                        Failure::own("the mailbox's sent mail can't be checked at the moment");
                    return done(Tried::Attempted(Attempted::Unconfirmed(why)));
                }
                Presence::NotFound | Presence::Unknowable => {
                    return told(Verdict::Unknown(Failure::own(CUT_OFF)));
                }
            }
        }
        // Checked after the search: a message found in the Sent folder was sent, even if the mailbox may no longer
        // send as this address.
        let from = claimed.from_address.as_str();
        if !self.mailboxes.may_send_as(&mailbox, from).await? {
            return failed(&format!("5.7.1 The mailbox may no longer send as {from}"));
        }
        match self.is_key_valid(claimed).await {
            Ok(true) => {}
            Ok(false) => return failed(KEY_ENDED),
            Err(ShowError::Database(error)) => return Err(error),
            Err(error) => {
                tracing::error!(log_id = %claimed.id, %error, "the send key of a scheduled message can't be checked");
                let why = Failure::own("the gateway can't check its send key at the moment");
                return told(Verdict::temporary(why));
            }
        }
        if let Pace::Later { at, why } = self.pace(&mailbox, Asker::Stored).await {
            if is_too_old {
                return failed(&format!("{TOO_OLD}: {why}"));
            }
            return done(Tried::Paced(at, why));
        }
        let size = usize::try_from(claimed.size_bytes).unwrap_or_default();
        let share = self.budget.take(Holder::Queue, size).await;
        let Some(message) = self.spooled(claimed.id).await? else {
            return failed("The stored message is gone");
        };
        Ok(TakenUp::Ready(Box::new(mailbox), message, share))
    }

    /// Whether the send key that a scheduled message was taken under may still send it; of other messages this isn't
    /// asked.
    async fn is_key_valid(&self, claimed: &Claimed) -> Result<bool, ShowError> {
        match &claimed.send_key_hash {
            Some(hash) => {
                let opens = self
                    .accounts
                    .still_opens(claimed.app, hash, claimed.credential);
                opens.await
            }
            None => Ok(true),
        }
    }

    /// Lets another replica take up a message immediately, as if it had not been claimed.
    async fn release(&self, claimed: &Claimed) {
        let given_back = async {
            let mut connection = self.pool.acquire().await?;
            let (gateway, now) = (self.lease.id(), self.clock.now());
            spool::release(&mut connection, gateway, claimed.id, claimed.due_at, now).await
        };
        if let Err(error) = given_back.await {
            // The process that ends this one's row recovers it.
            trouble!(warn, error, log_id = %claimed.id, "a stored message can't be released");
        }
    }

    async fn end_attempt(&self, claimed: &Claimed, attempted: Attempted, attempt: Attempt) {
        let settled = self.settle(attempted, attempt.number, claimed.opened_at);
        let facts = Facts::of(claimed);
        let took = Duration::from_millis(u64::try_from(attempt.milliseconds).unwrap_or_default());
        report(&settled, &facts, took);
        match settled {
            Settled::Sent { message_id } => {
                self.close(facts.sent(message_id, Some(attempt))).await;
            }
            Settled::Failed(failure) => {
                self.close(facts.failed(failure.to_string(), Some(attempt)))
                    .await;
            }
            Settled::Again {
                failure,
                next_attempt_at,
                outcome_unknown,
            } => {
                let deferral = Deferral {
                    id: claimed.id,
                    attempts: attempt.number,
                    error_message: failure.to_string(),
                    next_attempt_at,
                    outcome_unknown,
                    awaits_subscription: false,
                    awaits_pace: false,
                    attempt: Some(attempt),
                    due_at: claimed.due_at,
                };
                self.defer_again(&facts, &deferral).await;
            }
        }
    }

    /// Puts back a message whose attempt did not take place.
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
            outcome_unknown: claimed.outcome_unknown,
            awaits_subscription: awaits == Awaits::Subscription,
            awaits_pace: awaits == Awaits::Pace,
            attempt: None,
            due_at: claimed.due_at,
        };
        self.defer_again(&Facts::of(claimed), &deferral).await;
    }
}
