//! Rate limiting per mailbox. A short wait is spent within the request; a longer one is left to the queue, and
//! affects this mailbox alone.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::mailboxes::Mailbox;
use crate::sending::Sending;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::mailbox_pace::{self, Bounds};
use mailgate_storage::mailboxes;

/// The longest wait within a request, in seconds.
const SHORT_SECONDS: f64 = 5.0;

/// The longest that a stored message waits beyond that, in seconds.
const STORED_BEYOND_SECONDS: f64 = 20.0;

/// Timeout of the database query for a turn: the database's host may have vanished.
const ASKED: Duration = Duration::from_secs(10);

/// Messages that must try again are spread over this many seconds.
const SPREAD_SECONDS: f64 = 30.0;

/// The part of a minute's messages, in seconds, that a mailbox may send in a burst.
const BURST_SECONDS: f64 = 20.0;

/// A provider that asks for a wait of this length or more means the mailbox, not the message.
const PARKED: Duration = Duration::from_mins(10);

/// The kind of message that requests a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Asker {
    /// A message whose sender waits for the answer.
    Submission,
    /// A stored message.
    Stored,
}

/// Whether a message may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Pace {
    /// Yes; a short wait is over.
    Go,
    /// Not before this time.
    Later {
        at: DateTime<Utc>,
        why: &'static str,
    },
}

impl Sending {
    /// Takes a turn of the mailbox, waiting for it if that takes only seconds.
    pub(in crate::sending) async fn pace(&self, mailbox: &Mailbox, asker: Asker) -> Pace {
        let now = self.clock.now();
        if let Some(until) = mailbox.parked_until.filter(|until| *until > now) {
            return Pace::Later {
                at: until,
                why: "the provider has asked for a pause in sending from the mailbox",
            };
        }
        let Some(bounds) = self.bounds(mailbox, asker) else {
            return Pace::Go;
        };
        let taken = async {
            let mut connection = self.pool.acquire().await?;
            mailbox_pace::take(&mut connection, mailbox.id, bounds, now).await
        };
        let taken = tokio::time::timeout(ASKED, taken).await;
        let slot = match taken.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(slot) => slot,
            Err(error) => {
                // Send without pacing: the provider enforces limits of its own.
                trouble!(warn, error, credential_id = %mailbox.id, "a mailbox's sending rate can't be read");
                return Pace::Go;
            }
        };
        if let Some(until) = slot.day_over_until {
            return Pace::Later {
                at: until + spread(),
                why: "the mailbox has reached its daily limit",
            };
        }
        let wait = slot.turn - now;
        if wait.as_seconds_f64() > bounds.patience_seconds {
            return Pace::Later {
                at: slot.turn + spread(),
                why: "the mailbox has reached its limit per minute",
            };
        }
        tokio::time::sleep(wait.to_std().unwrap_or_default()).await;
        Pace::Go
    }

    fn bounds(&self, mailbox: &Mailbox, asker: Asker) -> Option<Bounds> {
        let limits = &self.providers.get(mailbox.plugin)?.settings.limits;
        if limits.per_minute == 0 && limits.per_day == 0 {
            return None;
        }
        let interval_seconds = match limits.per_minute {
            0 => 0.0,
            per_minute => 60.0 / f64::from(per_minute),
        };
        // Submissions push the next turn back by at most their own patience plus an interval, so that a stored message
        // gets one however many submissions there are.
        let beyond = match asker {
            Asker::Submission => 0.0,
            Asker::Stored => interval_seconds.min(STORED_BEYOND_SECONDS),
        };
        Some(Bounds {
            interval_seconds,
            burst_seconds: BURST_SECONDS.max(interval_seconds),
            patience_seconds: SHORT_SECONDS + beyond,
            per_day: match limits.per_day {
                0 => i64::MAX - 1,
                per_day => per_day.into(),
            },
        })
    }

    /// Parks a mailbox whose provider asks for a long wait: nothing is sent from it meanwhile.
    pub(in crate::sending) async fn park(&self, mailbox: &Mailbox, wait: Duration) {
        if wait < PARKED {
            return;
        }
        let until = self.clock.now() + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(4));
        let parked = async {
            let mut connection = self.pool.acquire().await?;
            mailboxes::park(&mut connection, mailbox.id, until).await
        };
        match parked.await {
            Ok(()) => {
                tracing::info!(credential_id = %mailbox.id, "a mailbox has sent enough for now");
            }
            Err(error) => {
                trouble!(warn, error, credential_id = %mailbox.id, "a mailbox can't be parked");
            }
        }
    }
}

fn spread() -> TimeDelta {
    let wait = Duration::from_secs_f64(SPREAD_SECONDS * rand::random::<f64>());
    TimeDelta::from_std(wait).unwrap_or_default()
}
