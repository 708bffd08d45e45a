//! Whether the database can be used, asked a few times in a second at most, however often somebody wants to know.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use sqlx::PgPool;

use super::pool;

/// Probes in a second, and as many saved up.
const PROBES: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);

/// What a probe has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The database answers, and its tables are there.
    Yes,
    /// Its tables are older than this program.
    NotMigrated,
    /// It doesn't answer.
    Unreachable,
}

/// The last probe.
#[derive(Debug, Clone)]
pub struct Readiness {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    probes: DefaultDirectRateLimiter,
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Option<Ready>>,
}

impl Readiness {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self {
            inner: Arc::new(Inner {
                pool,
                probes: RateLimiter::direct(Quota::per_second(PROBES)),
                turn: tokio::sync::Mutex::new(()),
                last: Mutex::new(None),
            }),
        }
    }

    /// What the last probe has shown, which is a new one unless there were many of late, or one runs.
    pub async fn ask(&self) -> Ready {
        let last = *self.last();
        let Some(last) = last else {
            let _turn = self.inner.turn.lock().await;
            let last = *self.last();
            return match last {
                Some(last) => last,
                None => self.probe().await,
            };
        };
        match self.inner.turn.try_lock() {
            Ok(_turn) if self.inner.probes.check().is_ok() => self.probe().await,
            _ => last,
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Ready>> {
        self.inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn probe(&self) -> Ready {
        let answer = pool::is_ready(&self.inner.pool).await;
        let ready = match &answer {
            Ok(true) => Ready::Yes,
            Ok(false) => Ready::NotMigrated,
            Err(_) => Ready::Unreachable,
        };
        let before = self.last().replace(ready);
        if ready != Ready::Yes && before != Some(ready) {
            tracing::warn!(?ready, error = ?answer.err(), "not ready");
        }
        ready
    }
}
