//! A process's right to work on messages: a lease that the database confirms, by the database's clock. The process
//! measures from the time of its request, by a clock that can't be set and that runs on while the machine is suspended,
//! so its lease never lasts longer for the process than for the database.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ids::GatewayId;
use super::suspend_aware_instant::SuspendAwareInstant;

/// How long a process is considered alive without a heartbeat.
pub const LEASE: Duration = Duration::from_secs(12);

/// After this time without confirmation a process stops sending to providers.
const FRESH: Duration = Duration::from_secs(LEASE.as_secs() / 3);

/// The lease of one process.
#[derive(Debug, Clone)]
pub struct Lease {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: GatewayId,
    /// When the last confirmed request was sent.
    confirmed: Mutex<SuspendAwareInstant>,
    living: AtomicUsize,
    ended: CancellationToken,
}

impl Lease {
    /// Creates a lease that the database granted for a request at `asked`.
    #[must_use]
    pub fn new(id: GatewayId, asked: SuspendAwareInstant) -> Self {
        Self {
            inner: Arc::new(Inner {
                id,
                confirmed: Mutex::new(asked),
                living: AtomicUsize::new(1),
                ended: CancellationToken::new(),
            }),
        }
    }

    /// The process that holds it.
    #[must_use]
    pub fn id(&self) -> GatewayId {
        self.inner.id
    }

    /// The database has confirmed it for a request at `asked`, and counts `living` live processes.
    pub fn confirm(&self, asked: SuspendAwareInstant, living: usize) {
        *self.confirmed() = asked;
        self.inner.living.store(living.max(1), Ordering::Relaxed);
    }

    /// Whether the database has confirmed it within the last third of its length.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        !self.has_ended() && self.confirmed().elapsed() < FRESH
    }

    /// The number of live processes, including this one, at the last confirmation.
    #[must_use]
    pub fn living(&self) -> usize {
        self.inner.living.load(Ordering::Relaxed)
    }

    /// Ends it, as another process has done; this is irreversible.
    pub fn end(&self) {
        self.inner.ended.cancel();
    }

    /// Whether another process has ended it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.ended.is_cancelled()
    }

    /// Waits until another process has ended it.
    pub async fn ended(&self) {
        self.inner.ended.cancelled().await;
    }

    fn confirmed(&self) -> MutexGuard<'_, SuspendAwareInstant> {
        self.inner
            .confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_believed_in_for_a_third_of_it() {
        let now = SuspendAwareInstant::now();
        let lease = Lease::new(GatewayId(uuid::Uuid::nil()), now);
        assert!(lease.is_fresh());
        lease.confirm(now.before(FRESH), 3);
        assert!(!lease.is_fresh());
        assert_eq!(lease.living(), 3);
        lease.confirm(SuspendAwareInstant::now(), 0);
        assert!(lease.is_fresh());
        assert_eq!(lease.living(), 1);
        lease.end();
        lease.confirm(SuspendAwareInstant::now(), 1);
        assert!(!lease.is_fresh() && lease.has_ended());
    }
}
