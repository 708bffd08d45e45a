//! Leases deliveries from the queue.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::time::timeout;

use super::Webhooks;
use super::arrivals::Arrivals;
use super::lanes::Leased;
use super::sign::SigningKeys;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::webhook_messages;
use mailgate_storage::webhook_queue::claim::Wanted;
use mailgate_storage::webhook_queue::due::{From, make_ready};
use mailgate_storage::webhook_queue::{self, Claimed};
use mailgate_types::ids::{AppId, WebhookMessageId};

/// How often due deliveries are made ready.
const READY_EVERY: Duration = Duration::from_millis(900);

/// Deliveries made ready per statement, and statements per poll: claims wait for them.
pub(super) const READY: i64 = 1_000;
const ROUNDS: usize = 2;

/// The overlap of consecutive reads of due deliveries: attempts are recorded a little late, and clocks differ.
const LATE: TimeDelta = TimeDelta::seconds(30);

/// Timeout of a step.
const STEP: Duration = Duration::from_secs(15);

/// A leased delivery with all data for sending it.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) claimed: Claimed,
    pub(super) body: Option<Bytes>,
    pub(super) keys: Option<SigningKeys>,
}

impl Leased for Ready {
    fn until(&self) -> Instant {
        self.claimed.until
    }
}

/// The result of one step of a poll.
pub(super) enum Seen {
    /// Newly ready deliveries.
    Arrived {
        arrived: Vec<webhook_queue::ready::Ready>,
        /// Whether more is due than the poll has made ready.
        has_more: bool,
        /// Whether something before it was never read.
        has_gap: bool,
    },
    /// Deliveries that are now leased by this process, and their bodies.
    Leased {
        claimed: Vec<Claimed>,
        bodies: HashMap<WebhookMessageId, Bytes>,
        /// The request, and the due time of its oldest remaining delivery.
        left: Vec<(Wanted, Option<DateTime<Utc>>)>,
    },
}

/// Leases deliveries over a connection of its own, one step at a time.
pub(super) struct Claimer {
    webhooks: Webhooks,
    connection: DedicatedConnection,
    arrivals: Arrivals,
    /// When due deliveries were last made ready, all of them.
    made_ready: Option<Instant>,
    /// Where the search for them begins.
    due: Option<From>,
}

impl Claimer {
    pub(super) fn new(webhooks: &Webhooks) -> Self {
        Self {
            webhooks: webhooks.clone(),
            // If the database loses a lease in a crash, its delivery is repeated.
            connection: DedicatedConnection::async_commit(webhooks.pool.clone()),
            arrivals: Arrivals::default(),
            made_ready: None,
            due: None,
        }
    }

    /// Newly ready deliveries since the last poll; at intervals, due deliveries are made ready first.
    pub(super) async fn arrived(mut self) -> (Self, Result<Seen, sqlx::Error>) {
        let seen = timeout(STEP, self.try_arrived()).await;
        (self, seen.unwrap_or(Err(sqlx::Error::PoolTimedOut)))
    }

    async fn try_arrived(&mut self) -> Result<Seen, sqlx::Error> {
        let now = self.webhooks.clock.now();
        let began = Instant::now();
        let make_ready = self.made_ready.is_none_or(|at| at.elapsed() >= READY_EVERY);
        let from = self.due.unwrap_or(From {
            due_at: now - LATE,
            lease: None,
        });
        let look = self.arrivals.look(began, now);
        let (due, arrived) = self
            .connection
            .run(async |connection| {
                let due = if make_ready {
                    Some(make_due_ready(connection, now, from).await?)
                } else {
                    None
                };
                let arrived = webhook_queue::ready::arrived(connection, look.window).await?;
                Ok((due, arrived))
            })
            .await?;
        self.arrivals.record(&look);
        let mut has_more = false;
        if let Some((from, is_complete)) = due {
            self.due = Some(from);
            has_more = !is_complete;
            self.made_ready = is_complete.then_some(began);
        }
        Ok(Seen::Arrived {
            arrived,
            has_more,
            has_gap: look.has_gap,
        })
    }

    /// Leases deliveries.
    pub(super) async fn claim(mut self, wanted: Vec<Wanted>) -> (Self, Result<Seen, sqlx::Error>) {
        let lease = self.webhooks.lease();
        let claiming = self.connection.run(async |connection| {
            let claimed = webhook_queue::claim::claim(connection, &wanted, lease).await?;
            let bodies = bodies(connection, &claimed).await?;
            let left = webhook_queue::claim::left(connection, &wanted).await?;
            Ok((claimed, bodies, left))
        });
        let seen = timeout(STEP, claiming).await;
        let seen = seen.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let seen = seen.map(|(claimed, bodies, left)| Seen::Leased {
            claimed,
            bodies,
            left: wanted.into_iter().zip(left).collect(),
        });
        (self, seen)
    }
}

/// Makes due deliveries ready, in a few rounds; returns where to go on, and whether those were all.
async fn make_due_ready(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    mut from: From,
) -> Result<(From, bool), sqlx::Error> {
    for _ in 0..ROUNDS {
        let round = make_ready(connection, now, from, READY).await?;
        match round.last {
            Some(last) if round.found == READY => {
                from = From {
                    due_at: last,
                    lease: None,
                }
            }
            _ => {
                let next = From {
                    due_at: now - LATE,
                    lease: Some(round.at - LATE),
                };
                return Ok((next, true));
            }
        }
    }
    Ok((from, false))
}

async fn bodies(
    connection: &mut PgConnection,
    claimed: &[Claimed],
) -> Result<HashMap<WebhookMessageId, Bytes>, sqlx::Error> {
    let mut messages: Vec<(AppId, WebhookMessageId)> = claimed
        .iter()
        .map(|claimed| (claimed.app, claimed.message))
        .collect();
    // Several endpoints may receive the same message; they are adjacent here.
    messages.dedup();
    let bodies = webhook_messages::bodies(connection, &messages).await?;
    Ok(bodies
        .into_iter()
        .map(|(id, body)| (id, Bytes::from(body)))
        .collect())
}

impl Webhooks {
    /// Releases leases of deliveries that were not attempted.
    pub(super) async fn release(self, waiting: Vec<Ready>) {
        if waiting.is_empty() {
            return;
        }
        let claimed: Vec<Claimed> = waiting.into_iter().map(|ready| ready.claimed).collect();
        let released = timeout(STEP, async {
            let mut connection = self.pool.acquire().await?;
            webhook_queue::release(&mut connection, &claimed, self.clock.now()).await
        });
        match released.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(()) => tracing::debug!(count = claimed.len(), "webhook leases were released"),
            Err(error) => {
                trouble!(
                    warn,
                    error,
                    count = claimed.len(),
                    "webhook leases can't be released; they will expire"
                );
            }
        }
    }
}
