//! The messages that this process works on, so that their leases go on while it lives, and end soon
//! after it has died.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::storage::spool;
use crate::types::clock::SharedClock;
use crate::types::ids::LogId;

/// How long a message is held without a word from its process.
pub(super) const LEASE: TimeDelta = TimeDelta::seconds(60);

/// The messages by id, and how often each is held.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    by_id: Arc<Mutex<HashMap<LogId, u32>>>,
}

/// A message that is worked on, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    held: Held,
    id: LogId,
}

impl Held {
    fn by_id(&self) -> MutexGuard<'_, HashMap<LogId, u32>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is worked on at this moment.
    pub(super) fn ids(&self) -> Vec<LogId> {
        self.by_id().keys().copied().collect()
    }

    pub(super) fn hold(&self, id: LogId) -> Hold {
        *self.by_id().entry(id).or_default() += 1;
        Hold {
            held: self.clone(),
            id,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut by_id = self.held.by_id();
        if let Some(count) = by_id.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                by_id.remove(&self.id);
            }
        }
    }
}

/// The leases of the messages that this process works on.
#[derive(Debug, Clone)]
pub struct Leases {
    pool: PgPool,
    clock: SharedClock,
    pub(super) held: Held,
    pub(super) nobody_sends: CancellationToken,
}

impl Leases {
    pub(super) fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self {
            pool,
            clock,
            held: Held::default(),
            nobody_sends: CancellationToken::new(),
        }
    }

    /// Cancelled when the last [`Sending`](super::Sending) is gone: nothing is held from then on.
    #[must_use]
    pub fn nobody_sends(&self) -> &CancellationToken {
        &self.nobody_sends
    }

    /// Says that this process lives, and which messages it works on.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn extend(&self) -> Result<(), sqlx::Error> {
        let ids = self.held.ids();
        if ids.is_empty() {
            return Ok(());
        }
        let mut connection = self.pool.acquire().await?;
        spool::extend_leases(&mut connection, &ids, self.clock.now() + LEASE).await
    }
}
