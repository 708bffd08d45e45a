//! Keeps the lease of this process, over a connection of its own, and ends the leases of others that have
//! lapsed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::storage::gateways;
use crate::storage::pool::DedicatedConnection;
use mailgate_types::boot_time::BootTime;
use mailgate_types::ids::GatewayId;
use mailgate_types::lease::{LEASE, Lease};

/// How long the database may take to confirm: past it the question is asked anew, over another connection.
const CONFIRMED: Duration = Duration::from_secs(3);

/// How long a lease must have been confirmed without a break before those of others are ended: after a
/// database that was away for all, each has the time to say that it lives.
const STEADY: Duration = Duration::from_secs(6);

/// How long a lease must have been seen unmoved by this process before it is taken for lapsed, whatever the
/// database's clock says, which somebody may set: far longer than its process sends without a confirmation, and as
/// much shorter than the lease as two looks are apart.
const UNMOVED: Duration = Duration::from_secs(LEASE.as_secs() - 2);

/// Begins to serve: a row of this process's own.
pub async fn begin(pool: &PgPool, id: GatewayId) -> Result<Lease, sqlx::Error> {
    let asked = BootTime::now();
    let mut connection = pool.acquire().await?;
    gateways::begin(&mut connection, id).await?;
    Ok(Lease::new(id, asked))
}

/// Keeps a lease.
#[derive(Debug)]
pub struct LeaseKeeper {
    connection: DedicatedConnection,
    lease: Lease,
    nobody_sends: CancellationToken,
    /// Since when each confirmation has come.
    steady_since: Option<Instant>,
    /// The leases of others, and when each was first seen as it is.
    others: HashMap<GatewayId, (DateTime<Utc>, BootTime)>,
    /// When it looked last.
    looked_at: Option<BootTime>,
}

impl LeaseKeeper {
    pub(super) fn new(pool: PgPool, lease: Lease, nobody_sends: CancellationToken) -> Self {
        Self {
            connection: DedicatedConnection::beside(pool),
            lease,
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

    /// Cancelled when the last [`Sending`](super::Sending) is gone: nothing is in hand from then on.
    #[must_use]
    pub fn nobody_sends(&self) -> &CancellationToken {
        &self.nobody_sends
    }

    /// Has the lease confirmed, or learns that it has ended; then ends those of others that have lapsed.
    pub async fn confirm(&mut self) -> Result<(), sqlx::Error> {
        let id = self.lease.id();
        let (asked, steady_since) = (BootTime::now(), Instant::now());
        let before = self.looked_at.replace(asked);
        if before.is_some_and(|before| before.elapsed() >= UNMOVED) {
            // This process slept, perhaps the whole machine did: the others have the time to say that they live.
            self.steady_since = None;
            self.others.clear();
        }
        let asking = self.connection.run(async |connection| {
            let living = gateways::confirm(connection, id).await?;
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

    /// Those of the others' leases that have not moved for the length of one.
    fn unmoved(
        &mut self,
        others: Vec<(GatewayId, DateTime<Utc>)>,
    ) -> Vec<(GatewayId, DateTime<Utc>)> {
        let now = BootTime::now();
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

    /// Says that nothing is in hand any more: what is left all the same is taken up by others at once.
    pub async fn end(&mut self) -> Result<(), sqlx::Error> {
        let id = self.lease.id();
        let ending = self
            .connection
            .run(async |connection| gateways::end(connection, id).await);
        let ended = timeout(CONFIRMED, ending).await;
        ended.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }
}
