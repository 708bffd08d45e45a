//! Floor 2: outgoing webhooks. What happens is written for those who listen in the transaction that makes
//! it happen (`storage::webhook_messages`); here it is signed and delivered.

mod attempt;
mod claim;
mod configurations;
mod deliveries;
mod dispatch;
mod lanes;
mod recorder;
mod redeliver;
mod schedule;
mod sign;
mod test;

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::Notify;

pub use self::attempt::Attempt;
pub use self::configurations::{
    Configuration, ConfigurationError, NewConfiguration, WebhookConfig, WebhookConfigChange,
};
pub use self::deliveries::{Delivery, DeliveryFilter, DeliveryTotals};
pub use self::redeliver::{RedeliverError, Redelivered};
pub use self::test::TestError;
use self::test::TestsUnderWay;
use crate::config::WebhookSettings;
use crate::providers::egress::{Egress, EgressSetupError};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, EndpointId};
use mailgate_types::seal::SealKeys;

/// Outgoing webhooks.
#[derive(Debug, Clone)]
pub struct Webhooks {
    pool: PgPool,
    seal_keys: Arc<SealKeys>,
    clock: SharedClock,
    egress: Egress,
    settings: Arc<WebhookSettings>,
    /// There may be something to deliver.
    wake: Arc<Notify>,
    tests: TestsUnderWay,
}

/// The place that an endpoint's secret is sealed for.
#[must_use]
pub fn secret_context(app: AppId, endpoint: EndpointId) -> String {
    match endpoint.config(app) {
        Some(config) => format!("webhook_configs.secret {}", config.0),
        None => format!("apps.webhook_secret {app}"),
    }
}

impl Webhooks {
    /// Over a database and the keys that seal its secrets.
    ///
    /// # Errors
    ///
    /// When no HTTP client can be made.
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
            tests: TestsUnderWay::default(),
        })
    }
}
