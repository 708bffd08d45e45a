//! Floor 2: billing. A subscriber is billed for its active mailboxes by the payment provider, which is authoritative on
//! subscriptions: the stored state is the one last fetched from it.

mod apply;
mod backoff;
mod cancel;
mod hosted;
mod jobs;
pub mod lifecycle;
pub mod notices;
mod provision;
mod quantity;
mod reactivate;
mod receive;
mod snapshot;
mod standing;
mod sweep;
mod sync;

#[cfg(any(test, feature = "fuzzing"))]
pub use receive::fuzzing::billing_events;
#[cfg(any(test, feature = "fuzzing"))]
pub use sync::fuzzing::billing_looks;

use std::sync::Arc;

use secrecy::SecretString;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use self::lifecycle::{NoTransition, State};
use crate::accounts::audit;
pub use mailgate_providers::payprov::PayprovError;
use mailgate_providers::payprov::{PayprovClient, PayprovClientError};
use mailgate_settings::PayprovSettings;
use mailgate_storage::database::outage::Outage;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::SubscriberId;

pub use cancel::Cancelled;
pub use mailgate_storage::billing_jobs::Job;
pub use mailgate_storage::payprov_events::StoredEvent;
pub use reactivate::Reactivated;
pub use receive::ReceiveError;
pub use standing::{ListedInvoice, LiveSubscription, Standing, StoredSubscription};

/// Why an operation on a subscriber failed.
#[derive(Debug, thiserror::Error)]
pub enum BillingError {
    /// No payment provider is configured.
    #[error("nothing is billed: payprov.secret_key is empty")]
    NotConfigured,
    /// The subscriber was deleted.
    #[error("the subscriber was deleted")]
    Gone,
    /// The subscriber has no customer at the provider yet, or no subscription.
    #[error("there is no subscription yet")]
    NoSubscription,
    /// The subscription's status doesn't allow it.
    #[error(transparent)]
    NotAllowed(#[from] NoTransition),
    /// The same, for operations that aren't transitions.
    #[error("the subscription is neither active nor trialing")]
    NotInGoodStanding(State),
    /// The same operation is already in progress.
    #[error("the subscription is being reactivated by another call")]
    InFlight,
    /// There is no payment method.
    #[error("there is no payment method")]
    NoPaymentMethod,
    /// The payment was declined; the provider's decline code, if it is a plain one.
    #[error("the payment was declined: {0}")]
    Declined(String),
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] PayprovError),
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the call was interrupted")]
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

/// The payment provider, if one is configured.
#[derive(Debug)]
struct Payprov {
    client: PayprovClient,
    webhook_secret: Option<SecretString>,
    trial_days: u32,
    past_due_grace_days: u32,
}

/// Billing of subscribers.
#[derive(Debug, Clone)]
pub struct Billing {
    pool: PgPool,
    clock: SharedClock,
    payprov: Option<Arc<Payprov>>,
    tracker: TaskTracker,
    /// Notified when new work is due.
    wake: Arc<Notify>,
    /// Retention of events, in days.
    retention_days: u32,
}

impl Billing {
    /// Takes the database pool; without payment provider settings nothing is billed. Operations that cost money run on
    /// `tracker`, so that they aren't left half done when the caller is cancelled.
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
                    past_due_grace_days: settings.past_due_grace_days,
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

    /// Whether a payment provider is configured.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.payprov.is_some()
    }

    fn payprov(&self) -> Result<&Payprov, BillingError> {
        self.payprov.as_deref().ok_or(BillingError::NotConfigured)
    }

    /// Checks that a subscriber's credential is still valid, directly before a call that changes something at the
    /// provider: fetching the subscription takes as long as the provider's response.
    async fn permit(&self, author: Author) -> Result<(), sqlx::Error> {
        let begun = audit::begin(&self.pool, author, self.clock.now()).await?;
        begun.rollback().await
    }

    /// Records a change that the provider has just made for a subscriber. It can't be undone, so call this before
    /// anything else that may fail.
    async fn record(
        &self,
        subscriber: SubscriberId,
        action: AuditAction,
        author: Author,
    ) -> Result<(), sqlx::Error> {
        let begun = audit::begin_afterwards(&self.pool, author, self.clock.now());
        let entry = AuditEntry::of_subscriber(action, subscriber);
        begun.await?.commit_change(entry).await
    }

    /// Wakes the workers immediately.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Returns once new work is due.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}
