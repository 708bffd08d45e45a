//! Floor 2: who is calling. Subscribers, apps and their keys.

mod authenticate;
mod create;
mod own;
mod rate;
mod renew;
mod sessions;
mod show;
mod slow_down;

use std::sync::Arc;

use sqlx::PgPool;

use crate::config::Limits;
use crate::storage::apps;
use crate::storage::gathered::Gathered;
use crate::types::clock::SharedClock;
use crate::types::seal::SealKeys;

pub use crate::storage::apps::{App, Change, SendingApp};
pub use crate::storage::subscribers::Subscriber;
pub use authenticate::{AuthenticateError, PresentedKey};
pub use create::{AppFields, CreateError, CreatedApp, CreatedSubscriber};
pub use own::ChangeError;
pub use rate::RateDecision;
use rate::Rates;
pub use renew::RenewError;
pub use sessions::AppSession;
use sessions::Sessions;
pub use show::{AppCredentials, ShowError};
use slow_down::Failures;

/// Subscribers and apps.
#[derive(Debug, Clone)]
pub struct Accounts {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    failures: Arc<Failures>,
    rates: Arc<Rates>,
    sessions: Arc<Sessions>,
    by_send_key: Arc<Gathered<Vec<Vec<u8>>, SendingApp>>,
}

impl Accounts {
    /// Over a database and the keys that seal its secrets. `limits` say how often
    /// a key may call, and an address fail to authenticate.
    #[must_use]
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        limits: &Limits,
    ) -> Self {
        let by_send_key = Gathered::new(pool.clone(), |connection, keys| {
            Box::pin(apps::find_by_send_keys(connection, keys))
        });
        Self {
            by_send_key: Arc::new(by_send_key),
            pool,
            seal_keys,
            clock,
            failures: Arc::new(Failures::new(limits.authentication_failures_per_minute)),
            sessions: Arc::default(),
            rates: Arc::new(Rates::new(
                limits.requests_per_second,
                limits.requests_burst,
            )),
        }
    }
}
