//! Floor 2: outgoing webhooks. Events are written for their listeners in the transaction that causes them
//! (`storage::webhook_messages`); here they are signed and delivered.
//!
//! An endpoint that fails is never switched off: each delivery ends after its last attempt, or with a 410 ([`backoff`]).

mod arrivals;
mod attempt;
pub(crate) mod backoff;
mod claim;
mod configurations;
mod deliveries;
mod dispatch;
mod endpoints;
mod failing;
mod full_scan;
mod lanes;
mod ready_set;
mod recorder;
mod redeliver;
mod replay;
mod request;
mod rotate;
mod sign;
mod test;
mod under_way;

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::Notify;

pub use self::attempt::Attempt;
pub use self::configurations::{
    Configuration, ConfigurationError, NewConfiguration, WebhookConfig, WebhookConfigChange,
};
pub use self::deliveries::{Delivery, DeliveryFilter, DeliveryPage, DeliveryTotals, ShownDelivery};
pub use self::endpoints::{EndpointDay, EndpointReport, Health, Missed, OwnedEndpoint};
pub use self::redeliver::{RedeliverError, Redelivered};
pub use self::replay::{MOST_WAITING, Replay, ReplayCursor, ReplayError, Replayed};
pub use self::request::{RequestHeader, headers_of};
pub use self::rotate::RotatedSecret;
pub use self::test::TestError;
use self::under_way::UnderWay;
use mailgate_providers::egress::{Egress, EgressSetupError};
use mailgate_settings::WebhookSettings;
use mailgate_types::audit::Author;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, EndpointId, SubscriberId};
use mailgate_types::seal::SealKeys;
use mailgate_types::shared_places::SharedPlaces;

/// Outgoing webhooks.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    egress: Egress,
    settings: Arc<WebhookSettings>,
    /// Notified when there may be something to deliver.
    wake: Arc<Notify>,
    tests: UnderWay,
    replays: UnderWay,
    replay_places: SharedPlaces<Option<SubscriberId>>,
}

/// The context that an endpoint's secret is sealed for.
#[must_use]
pub fn secret_context(app: AppId, endpoint: EndpointId) -> String {
    match endpoint.config(app) {
        Some(config) => format!("webhook_configs.secret {}", config.0),
        None => format!("apps.webhook_secret {app}"),
    }
}

/// The requester.
fn subscriber(author: Author) -> Option<SubscriberId> {
    author.shown.map(|shown| shown.subscriber)
}

impl Webhooks {
    /// The same webhooks by another clock: changes have its times.
    #[must_use]
    pub fn by_clock(&self, clock: SharedClock) -> Self {
        Self {
            clock,
            ..self.clone()
        }
    }

    /// Creates the service over a database and the keys that seal its secrets.
    ///
    /// # Errors
    ///
    /// If no HTTP client can be created.
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        settings: &WebhookSettings,
    ) -> Result<Self, EgressSetupError> {
        Ok(Self {
            pool,
            seal_keys,
            clock,
            egress: Egress::new(settings.allow_private, settings.exchange)?,
            settings: Arc::new(settings.clone()),
            wake: Arc::default(),
            tests: UnderWay::default(),
            replays: UnderWay::default(),
            replay_places: SharedPlaces::new(replay::AT_ONCE, 1),
        })
    }
}
