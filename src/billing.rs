//! Floor 2: billing. A subscriber is billed for its active mailboxes by the payment provider, whose word
//! on a subscription is final: what is stored here is what the last look at the provider has seen.

mod apply;
mod backoff;
mod end;
mod hosted;
mod jobs;
pub mod lifecycle;
pub mod notices;
mod provision;
mod quantity;
mod reactivate;
mod receive;
mod status;
mod sweep;
mod sync;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use receive::fuzzing::billing_events;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use sync::fuzzing::billing_looks;

use std::sync::Arc;

use secrecy::SecretString;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use self::lifecycle::{NoTransition, State};
use crate::accounts::audit::commit_change;
use crate::config::PayprovSettings;
use crate::providers::payprov::{PayprovClient, PayprovClientError, PayprovError};
use crate::storage::outage::Outage;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::SubscriberId;

pub use crate::storage::billing_jobs::Job;
pub use crate::storage::payprov_events::StoredEvent;
pub use end::Cancelled;
pub use reactivate::Reactivated;
pub use receive::ReceiveError;
pub use status::{LiveSubscription, Standing};

/// Why something could not be done for a subscriber.
#[derive(Debug, thiserror::Error)]
pub enum BillingError {
    /// There is no payment provider.
    #[error("nothing is billed: payprov.secret_key is empty")]
    NotConfigured,
    /// The subscriber is gone.
    #[error("the subscriber is gone")]
    Gone,
    /// The provider doesn't know the subscriber yet, or there is no subscription.
    #[error("there is no subscription yet")]
    NoSubscription,
    /// A subscription that stands so doesn't allow it.
    #[error(transparent)]
    NotAllowed(#[from] NoTransition),
    /// The same, for what is no transition.
    #[error("the subscription is neither active nor trialing")]
    NotInGoodStanding(State),
    /// Another call is at it.
    #[error("the subscription is being reactivated by another call")]
    InFlight,
    /// There is nothing to pay with.
    #[error("there is no payment method")]
    NoPaymentMethod,
    /// The payment was refused; the provider's word for why, if it is a plain one.
    #[error("the payment was declined: {0}")]
    Declined(String),
    /// What the provider said.
    #[error(transparent)]
    Provider(#[from] PayprovError),
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the call was cut off")]
    CutOff,
}

impl Outage for BillingError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

/// The payment provider, where there is one.
#[derive(Debug)]
struct Payprov {
    client: PayprovClient,
    webhook_secret: Option<SecretString>,
    trial_days: u32,
}

/// Who is billed for what.
#[derive(Debug, Clone)]
pub struct Billing {
    pool: PgPool,
    clock: SharedClock,
    payprov: Option<Arc<Payprov>>,
    tracker: TaskTracker,
    /// Something is due that wasn't before.
    wake: Arc<Notify>,
    /// Days that events are kept.
    retention_days: u32,
}

impl Billing {
    /// Over a database; without settings of a payment provider nothing is billed. What costs money runs on
    /// `tracker`, so that no caller who goes away leaves it half done.
    pub fn new(
        pool: PgPool,
        clock: SharedClock,
        settings: Option<&PayprovSettings>,
        tracker: TaskTracker,
        retention_days: u32,
    ) -> Result<Self, PayprovClientError> {
        let payprov = match settings {
            None => None,
            Some(settings) => {
                if settings.webhook_secret.is_none() {
                    tracing::warn!(
                        "payprov.webhook_secret is empty: events at /payprov/webhook are accepted unverified"
                    );
                }
                Some(Arc::new(Payprov {
                    client: PayprovClient::new(settings, Arc::clone(&clock))?,
                    webhook_secret: settings.webhook_secret.clone(),
                    trial_days: settings.trial_days,
                }))
            }
        };
        Ok(Self {
            pool,
            clock,
            payprov,
            tracker,
            wake: Arc::default(),
            retention_days,
        })
    }

    /// Whether there is a payment provider.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.payprov.is_some()
    }

    fn payprov(&self) -> Result<&Payprov, BillingError> {
        self.payprov.as_deref().ok_or(BillingError::NotConfigured)
    }

    /// Records what the provider has just done for a subscriber: that can't be undone, so nothing that may
    /// still fail comes first.
    async fn record(
        &self,
        subscriber: SubscriberId,
        action: AuditAction,
        author: Author,
    ) -> Result<(), sqlx::Error> {
        let transaction = self.pool.begin().await?;
        let entry = AuditEntry::of_subscriber(action, subscriber);
        commit_change(transaction, author, self.clock.now(), entry).await
    }

    /// Has the work looked for at once.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Returns once there is something to do that wasn't there before.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}
