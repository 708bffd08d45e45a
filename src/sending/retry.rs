//! Later attempts: messages that are due, and messages whose process died.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Sending;
use super::attempt::{Attempted, Submission};
use super::budget::{Holder, Share};
use super::facts::{Facts, report};
use super::gate::{Blocked, admit};
use super::journal::Ending;
use super::leaving::{NOT_CONFIRMED, StoredLeaves};
use super::pace::Pace;
use super::settle::{Settled, UNVERIFIABLE};
use super::verify::Presence;
use crate::mailboxes::Mailbox;
use crate::providers::mail::transport::Recipients;
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::storage::outage::trouble;
use crate::storage::spool::{Attempt, Claimed, Deferral};
use crate::storage::{apps, gateways, spool};
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

/// Stored messages that one process tries at once.
pub(super) const PLACES: usize = 32;

/// Abandoned messages that are looked at together.
const ROUND: i64 = 64;

/// How long a message rests whose mailbox can't be looked into at the moment.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How long a message waits again whose app may not send at the moment.
const BLOCKED_WAIT: TimeDelta = TimeDelta::hours(1);

/// How long a message waits that this process would not let go of: its database was away, or its lease not
/// confirmed.
const WITHHELD_WAIT: TimeDelta = TimeDelta::seconds(5);

/// How long a message waits again that the database did not give out.
const UNREADABLE_WAIT: TimeDelta = TimeDelta::minutes(1);

/// How long a message that nobody has an answer for is looked up, before it counts as failed.
const LOOKED_UP: TimeDelta = TimeDelta::days(1);

/// What is told of a message whose submission was cut off.
const CUT_OFF: &str =
    "the gateway stopped, or the connection broke, while the message was being submitted";

/// What is told of a message that was never sent because of what it waited for.
const TOO_OLD: &str = "The message has waited for the maximum time";

/// What is told of a message that died with its process, and is not among the sent ones.
const NOT_SENT: &str =
    "The gateway stopped before the message was sent, and before its sender got an answer";

/// What came of taking up a stored message.
enum Tried {
    Attempted(Attempted),
    /// Nothing was sent: the app may not at the moment.
    Blocked(Blocked),
    /// Nothing was sent: the mailbox has sent as much as it may.
    Paced(DateTime<Utc>, &'static str),
    /// Nothing was sent: the process is about to end.
    GivenBack,
}

/// How far a message got before its submission.
enum TakenUp {
    /// It may go out, in the room that it takes.
    Ready(Box<Mailbox>, Message, Share),
    /// It won't, for now.
    Done(Tried),
}

impl Sending {
    /// Claims what is due, as far as there are places for it, and begins to try it. Answers how many
    /// there were, so that a caller knows whether to come back at once.
    ///
    /// # Errors
    ///
    /// What the database said when asked for what is due.
    pub async fn retry_due(&self) -> Result<usize, sqlx::Error> {
        let mut places = Vec::new();
        while let Ok(place) = Arc::clone(&self.retries).try_acquire_owned() {
            places.push(place);
        }
        if places.is_empty() {
            return Ok(0);
        }
        let now = self.clock.now();
        let limit = i64::try_from(places.len()).unwrap_or(i64::MAX);
        // A message whose storing had no answer may be due while its sender still waits.
        let held = self.held.ids();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_due(&mut connection, self.lease.id(), now, &held, limit).await?
        };
        let count = claimed.len();
        for (claimed, place) in claimed.into_iter().zip(places) {
            let sending = self.clone();
            self.tracker.spawn(async move {
                let _place = place;
                sending.retry(claimed).await;
            });
        }
        Ok(count)
    }

    /// Makes messages due that wait for their apps' subscriptions alone, where these are suspended no longer.
    pub async fn release_waiting(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        spool::release_waiting(&mut connection, self.clock.now()).await
    }

    /// Takes up messages whose process has ended: brings them to an end, or back into the queue. Answers how
    /// many there were.
    pub async fn take_over(&self) -> Result<usize, sqlx::Error> {
        let gateway = self.lease.id();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            let ended = gateways::ended(&mut connection).await?;
            if ended.is_empty() {
                return Ok(0);
            }
            let claimed = spool::claim_of_ended(&mut connection, gateway, &ended, ROUND).await?;
            if claimed.is_empty() {
                gateways::forget(&mut connection, &ended).await?;
            }
            claimed
        };
        self.take_up_left(claimed).await
    }

    /// As [`Sending::take_over`], with messages that nobody has in hand.
    pub async fn recover_lapsed(&self) -> Result<usize, sqlx::Error> {
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_lapsed(&mut connection, self.lease.id(), ROUND).await?
        };
        self.take_up_left(claimed).await
    }

    /// As [`Sending::take_over`], with messages that this process has in hand and twice was seen not to work
    /// on: the task that did has panicked.
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
        // All of them from now on, since some wait long for a place.
        let holds: Vec<_> = (abandoned.iter())
            .map(|claimed| self.held.hold(claimed.id))
            .collect();
        for (claimed, hold) in abandoned.into_iter().zip(holds) {
            let stored = {
                let mut connection = self.pool.acquire().await?;
                let stored = spool::has_chunks(&mut connection, claimed.id).await?;
                if stored {
                    let (gateway, now) = (self.lease.id(), self.clock.now());
                    spool::release(&mut connection, gateway, claimed.id, claimed.due_at, now)
                        .await?;
                }
                stored
            };
            tracing::warn!(log_id = %claimed.id, stored, "a message was left behind by a process that died");
            if !stored {
                // Only closing fails, and that is when no place is needed any more.
                let place = Arc::clone(&self.retries).acquire_owned().await.ok();
                let sending = self.clone();
                self.tracker.spawn(async move {
                    let (_place, _hold) = (place, hold);
                    sending.end_unanswered(claimed).await;
                });
            }
        }
        Ok(count)
    }

    /// Ends a message whose bytes died with their process: its sender has had no answer, and it can't
    /// be sent again.
    async fn end_unanswered(&self, claimed: Claimed) {
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
            Presence::ConfirmedMissing => Ending {
                freed_key: claimed.key,
                ..facts.failed(NOT_SENT.to_owned(), None)
            },
            Presence::NotNow if claimed.opened_at + LOOKED_UP > self.clock.now() => {
                self.look_again(claimed.id).await;
                return;
            }
            Presence::NotNow | Presence::NotFound | Presence::Unknowable => {
                facts.failed(format!("{UNVERIFIABLE} ({CUT_OFF})"), None)
            }
        };
        self.close(ending).await;
    }

    /// Lets go of a message that is to be looked at again.
    async fn look_again(&self, id: LogId) {
        let let_go = async {
            let mut connection = self.pool.acquire().await?;
            spool::look_again(&mut connection, self.lease.id(), id, LOOK_AGAIN).await
        };
        if let Err(error) = let_go.await {
            // It is found among what this process has in hand and does not work on.
            trouble!(warn, error, log_id = %id, "a message can't be released");
        }
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
            Ok(Tried::Paced(until, why)) => self.postpone(&claimed, why, until, false).await,
            Ok(Tried::Blocked(blocked)) => {
                let until = self.clock.now() + BLOCKED_WAIT;
                self.postpone(&claimed, &blocked.to_string(), until, true)
                    .await;
            }
            Err(error) => {
                trouble!(error, error, log_id = %claimed.id, "a stored message can't be read; it stays stored");
                let why = "the gateway's database can't be read";
                let until = self.clock.now() + UNREADABLE_WAIT;
                self.postpone(&claimed, why, until, false).await;
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
            .attempt(Submission {
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
            let until = self.clock.now() + WITHHELD_WAIT;
            return Ok(Tried::Paced(until, NOT_CONFIRMED));
        }
        Ok(Tried::Attempted(attempted))
    }

    /// All that comes before the submission; it may be cut off at any moment.
    async fn take_up(&self, claimed: &Claimed) -> Result<TakenUp, sqlx::Error> {
        let done = |tried| Ok(TakenUp::Done(tried));
        let told = |verdict| done(Tried::Attempted(Attempted::Known(verdict)));
        let failed = |text: &str| told(Verdict::Permanent(Failure::own(text)));
        let is_too_old = self.clock.now() >= self.longest(claimed.opened_at);
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
        // What was sent already was sent, whatever holds by now.
        let from = claimed.from_address.as_str();
        if !self.mailboxes.may_send_as(&mailbox, from).await? {
            return failed(&format!("5.7.1 The mailbox may no longer send as {from}"));
        }
        if let Pace::Later { at, why } = self.pace(&mailbox).await {
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

    /// Lets another replica take a message up at once, as if nobody had.
    async fn release(&self, claimed: &Claimed) {
        let given_back = async {
            let mut connection = self.pool.acquire().await?;
            let (gateway, now) = (self.lease.id(), self.clock.now());
            spool::release(&mut connection, gateway, claimed.id, claimed.due_at, now).await
        };
        if let Err(error) = given_back.await {
            // Whoever ends this process's row finds it.
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
                    attempt: Some(attempt),
                    due_at: claimed.due_at,
                };
                self.defer_again(&facts, &deferral).await;
            }
        }
    }

    /// Puts a message back whose attempt did not take place.
    async fn postpone(
        &self,
        claimed: &Claimed,
        why: &str,
        until: DateTime<Utc>,
        awaits_subscription: bool,
    ) {
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
            awaits_subscription,
            attempt: None,
            due_at: claimed.due_at,
        };
        self.defer_again(&Facts::of(claimed), &deferral).await;
    }
}
