//! Renews the lease of this process over a connection of its own, and ends the lapsed leases of others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::gateways;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::GatewayId;
use mailgate_types::lease::{LEASE, Lease};
use mailgate_types::suspend_aware_instant::SuspendAwareInstant;

/// Timeout of a renewal; after it the renewal is retried over another connection.
const CONFIRMED: Duration = Duration::from_secs(3);

/// How long a lease must have been renewed without interruption before its process may end others: after a database
/// outage, each process gets time to renew its own.
const STEADY: Duration = Duration::from_secs(6);

/// How long this process must have seen a lease unchanged before it counts as lapsed, whatever the database's clock,
/// which can be changed: far longer than its process sends without a renewal, and shorter than the lease by the
/// interval between two checks.
const UNMOVED: Duration = Duration::from_secs(LEASE.as_secs() - 2);

/// Starts serving: inserts a row for this process.
pub async fn begin(pool: &PgPool, id: GatewayId) -> Result<Lease, sqlx::Error> {
    let asked = SuspendAwareInstant::now();
    let mut connection = pool.acquire().await?;
    gateways::begin(&mut connection, id).await?;
    Ok(Lease::new(id, asked))
}

/// Renews a lease.
#[derive(Debug)]
pub struct LeaseKeeper {
    connection: DedicatedConnection,
    lease: Lease,
    clock: SharedClock,
    nobody_sends: CancellationToken,
    /// Since when all renewals have succeeded.
    steady_since: Option<Instant>,
    /// The leases of others, and when each was first seen in its current state.
    others: HashMap<GatewayId, (DateTime<Utc>, SuspendAwareInstant)>,
    /// When the last check began.
    looked_at: Option<SuspendAwareInstant>,
}

impl LeaseKeeper {
    pub(in crate::sending) fn new(
        pool: PgPool,
        lease: Lease,
        clock: SharedClock,
        nobody_sends: CancellationToken,
    ) -> Self {
        Self {
            connection: DedicatedConnection::beside(pool),
            lease,
            clock,
            nobody_sends,
            steady_since: None,
            others: HashMap::new(),
            looked_at: None,
        }
    }

    /// The lease.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The clock that it synchronizes.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Cancelled when the last [`Sending`](crate::sending::Sending) is dropped: no message is in progress from then on.
    #[must_use]
    pub fn nobody_sends(&self) -> &CancellationToken {
        &self.nobody_sends
    }

    /// Renews the lease, or finds out that it has ended, and takes over the database's time; then ends the leases of
    /// others that have lapsed.
    pub async fn confirm(&mut self) -> Result<(), sqlx::Error> {
        let id = self.lease.id();
        let (asked, steady_since) = (SuspendAwareInstant::now(), Instant::now());
        let before = self.looked_at.replace(asked);
        if before.is_some_and(|before| before.elapsed() >= UNMOVED) {
            // This process, perhaps the whole machine, was suspended: give the others the time to renew.
            self.steady_since = None;
            self.others.clear();
        }
        let clock = &self.clock;
        let asking = self.connection.run(async |connection| {
            let (living, reading) = gateways::confirm(connection, id).await?;
            clock.synchronize(reading, asked);
            Ok((living, gateways::others(connection, id).await?))
        });
        let answer = timeout(CONFIRMED, asking).await;
        let (living, others) = match answer.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(answer) => answer,
            Err(error) => {
                self.steady_since = None;
                self.others.clear();
                return Err(error);
            }
        };
        if let Some(living) = living {
            self.lease.confirm(asked, living);
        } else {
            self.lease.end();
            return Ok(());
        }
        let is_steady = self.steady_since.get_or_insert(steady_since).elapsed() >= STEADY;
        let unmoved = self.unmoved(others);
        if !is_steady || unmoved.is_empty() {
            return Ok(());
        }
        let ending = self
            .connection
            .run(async |connection| gateways::end_lapsed(connection, &unmoved).await);
        let ended = timeout(CONFIRMED, ending).await;
        let ended = ended.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        for gateway in ended {
            tracing::warn!(gateway_id = %gateway, "a gateway's lease has expired: its messages are taken over");
        }
        Ok(())
    }

    /// The leases of others that have not changed for [`UNMOVED`].
    fn unmoved(
        &mut self,
        others: Vec<(GatewayId, DateTime<Utc>)>,
    ) -> Vec<(GatewayId, DateTime<Utc>)> {
        let now = SuspendAwareInstant::now();
        let before = std::mem::take(&mut self.others);
        let mut unmoved = Vec::new();
        for (id, until) in others {
            let seen = before.get(&id).filter(|(known, _)| *known == until);
            let since = seen.map_or(now, |(_, since)| *since);
            if since.elapsed() >= UNMOVED {
                unmoved.push((id, until));
            }
            self.others.insert(id, (until, since));
        }
        unmoved
    }

    /// Ends the lease. Other processes may immediately take over messages still in progress.
    pub async fn end(&mut self) -> Result<(), sqlx::Error> {
        let id = self.lease.id();
        let ending = self
            .connection
            .run(async |connection| gateways::end(connection, id).await);
        let ended = timeout(CONFIRMED, ending).await;
        ended.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }
}
