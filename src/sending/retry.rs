//! Later attempts: messages that are due, and messages whose process died.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::Sending;
use super::gate::{Blocked, admit};
use super::pipeline::{Names, Settled, UNVERIFIABLE, report};
use crate::config::Unverifiable;
use crate::providers::mail::transport::Recipients;
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::storage::spool::{Claimed, Closing, Deferral};
use crate::storage::{apps, spool};

/// Stored messages that one process tries at once.
pub(super) const PLACES: usize = 32;

/// Abandoned messages that are looked at together.
const ROUND: i64 = 64;

/// How long a message waits again whose app may not send at the moment.
const BLOCKED_WAIT: TimeDelta = TimeDelta::hours(1);

/// How long a message waits again that the database did not give out.
const UNREADABLE_WAIT: TimeDelta = TimeDelta::minutes(1);

/// What came of taking up a stored message.
enum Tried {
    Attempted(Verdict),
    /// Nothing was sent: the app may not at the moment.
    Blocked(Blocked),
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
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_due(&mut connection, now, now + self.lease(), limit).await?
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

    /// Brings messages to an end, or back into the queue, whose process died while it worked on them.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn recover_abandoned(&self) -> Result<usize, sqlx::Error> {
        let now = self.clock.now();
        let abandoned = {
            let mut connection = self.pool.acquire().await?;
            spool::claim_abandoned(&mut connection, now, now + self.lease(), ROUND).await?
        };
        let count = abandoned.len();
        for claimed in abandoned {
            let stored = {
                let mut connection = self.pool.acquire().await?;
                spool::has_chunks(&mut connection, claimed.id).await?
            };
            tracing::warn!(log_id = %claimed.id, stored, "a message was left behind by a process that died");
            let why = Failure::own("the gateway stopped while the message was being submitted");
            if stored && self.settings.unverifiable == Unverifiable::Retry {
                let verdict = Verdict::Unknown(why);
                self.end_attempt(&claimed, verdict, Duration::ZERO).await;
            } else {
                // Without its bytes the message can't be sent again, and its sender has had no answer.
                let text = format!("{UNVERIFIABLE} ({why})");
                self.close(Closing::failed(claimed.id, text)).await;
            }
        }
        Ok(count)
    }

    async fn retry(&self, claimed: Claimed) {
        let started = std::time::Instant::now();
        match self.try_again(&claimed).await {
            Ok(Tried::Attempted(verdict)) => {
                self.end_attempt(&claimed, verdict, started.elapsed()).await;
            }
            Ok(Tried::Blocked(blocked)) => {
                self.put_back(&claimed, &blocked.to_string(), BLOCKED_WAIT)
                    .await;
            }
            Err(error) => {
                tracing::error!(log_id = %claimed.id, %error, "a stored message can't be read; it stays stored");
                let why = "the gateway's database can't be read";
                self.put_back(&claimed, why, UNREADABLE_WAIT).await;
            }
        }
    }

    async fn try_again(&self, claimed: &Claimed) -> Result<Tried, sqlx::Error> {
        let failed = |text: &str| Ok(Tried::Attempted(Verdict::Permanent(Failure::own(text))));
        let status = {
            let mut connection = self.pool.acquire().await?;
            apps::subscription_status(&mut connection, claimed.app).await?
        };
        let Some(status) = status else {
            return failed("The app was deleted");
        };
        match admit(status) {
            Ok(()) => {}
            Err(blocked @ Blocked::Suspended(_)) => return Ok(Tried::Blocked(blocked)),
            Err(blocked @ Blocked::Ended) => return failed(&blocked.to_string()),
        }
        let Some(mailbox) = self.mailboxes.active(claimed.credential).await? else {
            return failed("The mailbox is no longer connected");
        };
        let Some(message) = self.spooled(claimed.id).await? else {
            return failed("The stored message is gone");
        };
        let recipients = Recipients {
            addresses: claimed.recipients.clone(),
            smtputf8: claimed.smtputf8,
        };
        let verdict = self.attempt(&mailbox, &recipients, &message).await;
        Ok(Tried::Attempted(verdict))
    }

    async fn end_attempt(&self, claimed: &Claimed, verdict: Verdict, took: Duration) {
        let attempts = claimed.attempts + 1;
        let settled = self.settle(verdict, attempts);
        let names = Names {
            id: claimed.id,
            app: claimed.app,
            credential: claimed.credential,
            plugin: claimed.plugin,
        };
        report(&settled, names, took);
        match settled {
            Settled::Sent { message_id } => {
                self.close(Closing::sent(claimed.id, message_id)).await;
            }
            Settled::Failed(failure) => {
                self.close(Closing::failed(claimed.id, failure.to_string()))
                    .await;
            }
            Settled::Again {
                failure,
                next_attempt_at,
            } => {
                self.keep(&Deferral {
                    id: claimed.id,
                    attempts,
                    error_message: failure.to_string(),
                    next_attempt_at,
                })
                .await;
            }
        }
    }

    /// Puts a message back whose attempt did not take place.
    async fn put_back(&self, claimed: &Claimed, why: &str, wait: TimeDelta) {
        self.keep(&Deferral {
            id: claimed.id,
            attempts: claimed.attempts,
            error_message: why.to_owned(),
            next_attempt_at: self.clock.now() + wait,
        })
        .await;
    }

    async fn keep(&self, deferral: &Deferral) {
        if let Err(error) = self.store(deferral, None).await {
            // The row's lease brings it back.
            tracing::error!(log_id = %deferral.id, %error, "a stored message could not be put back");
        }
    }
}
