//! Floor 2: who is calling. Subscribers, apps and their keys.

mod authenticate;
mod create;
mod show;
mod slow_down;

use std::sync::Arc;

use sqlx::PgPool;

use crate::types::clock::SharedClock;
use crate::types::seal::SealKeys;

pub use crate::storage::apps::SendingApp;
pub use authenticate::{AuthenticateError, PresentedKey};
pub use create::{CreateError, CreatedApp, CreatedSubscriber};
pub use show::{AppCredentials, ShowError};
use slow_down::Failures;

/// Subscribers and apps.
#[derive(Debug, Clone)]
pub struct Accounts {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    failures: Arc<Failures>,
}

impl Accounts {
    /// Over a database and the keys that seal its secrets. An address may fail to authenticate so
    /// often in a minute before it is slowed down.
    #[must_use]
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        failures_per_minute: u32,
    ) -> Self {
        Self {
            pool,
            seal_keys,
            clock,
            failures: Arc::new(Failures::new(failures_per_minute)),
        }
    }
}
