//! Leases deliveries from the queue.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sqlx::PgConnection;
use tokio::time::timeout;
use uuid::Uuid;

use super::Webhooks;
use super::lanes::Leased;
use super::sign::SigningKeys;
use crate::storage::outage::trouble;
use crate::storage::pool::DedicatedConnection;
use crate::storage::webhook_messages;
use crate::storage::webhook_queue::{self, Claimed};
use mailgate_types::ids::{AppId, EndpointId, WebhookMessageId};

/// Endpoints read per poll.
const ENDPOINTS: usize = 512;

/// How often due deliveries are made ready.
const READY_EVERY: Duration = Duration::from_millis(900);

/// Deliveries made ready per statement.
const READY: u64 = 1_000;

/// Timeout of a step.
const STEP: Duration = Duration::from_secs(15);

/// A leased delivery with all that sending it takes.
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
    /// Endpoints with ready deliveries.
    Endpoints(Vec<EndpointId>),
    /// Deliveries that are now leased by this process, and their bodies.
    Leased(Vec<Claimed>, HashMap<WebhookMessageId, Bytes>),
}

/// Leases deliveries over a connection of its own, one step at a time.
pub(super) struct Claimer {
    webhooks: Webhooks,
    connection: DedicatedConnection,
    /// Where the next poll begins, so that all endpoints get their turn.
    after: EndpointId,
    made_ready: Option<Instant>,
}

impl Claimer {
    pub(super) fn new(webhooks: &Webhooks) -> Self {
        Self {
            webhooks: webhooks.clone(),
            // If the database loses a lease in a crash, its delivery is repeated.
            connection: DedicatedConnection::async_commit(webhooks.pool.clone()),
            after: EndpointId(Uuid::nil()),
            made_ready: None,
        }
    }

    /// The next endpoints with ready deliveries; at intervals, due deliveries are made ready first.
    pub(super) async fn endpoints(mut self) -> (Self, Result<Seen, sqlx::Error>) {
        let seen = match timeout(STEP, self.try_endpoints()).await {
            Ok(endpoints) => endpoints.map(Seen::Endpoints),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        };
        (self, seen)
    }

    async fn try_endpoints(&mut self) -> Result<Vec<EndpointId>, sqlx::Error> {
        let now = self.webhooks.clock.now();
        let make_ready = self.made_ready.is_none_or(|at| at.elapsed() >= READY_EVERY);
        let after = self.after;
        let endpoints = self
            .connection
            .run(async |connection| {
                if make_ready {
                    let limit = i64::try_from(READY).unwrap_or(i64::MAX);
                    while webhook_queue::make_ready(connection, now, limit).await? == READY {}
                }
                ready_endpoints(connection, after).await
            })
            .await?;
        if make_ready {
            self.made_ready = Some(Instant::now());
        }
        // A short list has wrapped around to where it began.
        if let (ENDPOINTS, Some(last)) = (endpoints.len(), endpoints.last()) {
            self.after = *last;
        }
        Ok(endpoints)
    }

    /// Leases up to a number of deliveries for each endpoint.
    pub(super) async fn claim(
        mut self,
        places: Vec<(EndpointId, i64)>,
    ) -> (Self, Result<Seen, sqlx::Error>) {
        let lease = self.webhooks.lease();
        let claiming = self.connection.run(async |connection| {
            let claimed = webhook_queue::claim(connection, &places, lease).await?;
            let bodies = bodies(connection, &claimed).await?;
            Ok(Seen::Leased(claimed, bodies))
        });
        let seen = timeout(STEP, claiming).await;
        (self, seen.unwrap_or(Err(sqlx::Error::PoolTimedOut)))
    }
}

/// Endpoints with ready deliveries, starting after `after` and wrapping around to it.
async fn ready_endpoints(
    connection: &mut PgConnection,
    after: EndpointId,
) -> Result<Vec<EndpointId>, sqlx::Error> {
    let limit = |found: usize| i64::try_from(ENDPOINTS - found).unwrap_or(0);
    let mut endpoints = webhook_queue::ready_endpoints(connection, after, limit(0)).await?;
    if endpoints.len() < ENDPOINTS && !after.0.is_nil() {
        let first = EndpointId(Uuid::nil());
        let others = webhook_queue::ready_endpoints(connection, first, limit(endpoints.len()));
        let others = others.await?;
        endpoints.extend(others.into_iter().take_while(|endpoint| *endpoint <= after));
    }
    Ok(endpoints)
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
            Ok(()) => tracing::debug!(count = claimed.len(), "webhook leases were given back"),
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
