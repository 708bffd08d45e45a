//! Test deliveries: sent immediately, signed as any other, not retried, and listed among the deliveries.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::configurations::ConfigurationError;
use super::{Attempt, Delivery, WebhookConfig, Webhooks};
use crate::storage::outage::trouble;
use crate::storage::webhook_deliveries;
use mailgate_types::event::TestEvent;
use mailgate_types::ids::{AppId, EndpointId, WebhookDeliveryId, WebhookMessageId};

/// Why a test was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// Another test of the app is in progress.
    #[error("another test delivery of this app is under way")]
    UnderWay,
    /// The configuration's secret can't be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// The apps that have a test in progress in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct TestsUnderWay(Arc<Mutex<HashSet<AppId>>>);

/// Marks an app's test as in progress until dropped.
struct TestPermit<'a> {
    tests: &'a TestsUnderWay,
    app: AppId,
}

impl TestsUnderWay {
    /// `None` while a test of the app is in progress. No permit is created then, since dropping it would clear the
    /// mark.
    fn begin(&self, app: AppId) -> Option<TestPermit<'_>> {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.insert(app).then(|| TestPermit { tests: self, app })
    }
}

impl Drop for TestPermit<'_> {
    fn drop(&mut self) {
        let mut apps = self.tests.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.remove(&self.app);
    }
}

impl Webhooks {
    /// Sends a test delivery to a configuration, active or not, and returns what was sent and its outcome. One at a
    /// time per app, since the subscriber chooses the URL and may request any number of tests.
    ///
    /// # Errors
    ///
    /// [`TestError`]; nothing is sent then.
    pub async fn test(&self, config: &WebhookConfig) -> Result<(TestEvent, Attempt), TestError> {
        let _place = self.tests.begin(config.app).ok_or(TestError::UnderWay)?;
        let secret = (self.signing_secret(config)).map_err(ConfigurationError::from)?;
        let now = self.clock.now();
        let event = TestEvent {
            app: config.app,
            at: now,
        };
        let id = WebhookMessageId::at(now);
        let body = Bytes::from(event.body());
        let attempt = self.attempt(&config.url, secret.text(), id, body).await;
        if let Err(error) = self.record_test(config, id, now, &attempt).await {
            trouble!(warn, error, webhook_config_id = %config.id, "a test delivery can't be listed");
        }
        Ok((event, attempt))
    }

    async fn record_test(
        &self,
        config: &WebhookConfig,
        message: WebhookMessageId,
        began_at: DateTime<Utc>,
        attempt: &Attempt,
    ) -> Result<(), sqlx::Error> {
        let test = Delivery {
            id: WebhookDeliveryId::at(began_at),
            message,
            event: TestEvent::NAME.to_owned(),
            attempt_number: 1,
            http_status: attempt.http_status.map(i32::from),
            response_body: attempt.response_body.clone(),
            delivered_at: began_at,
            duration_ms: attempt.duration_ms,
            success: attempt.success,
            error_message: attempt.error_message.clone(),
        };
        let mut connection = self.pool.acquire().await?;
        let endpoint = EndpointId::from(config.id);
        webhook_deliveries::record_test(&mut connection, config.app, endpoint, &test).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn one_at_a_time_for_each_app() {
        let (tests, one, two) = (
            TestsUnderWay::default(),
            Uuid::from_u128(1),
            Uuid::from_u128(2),
        );
        let first = tests.begin(AppId(one));
        assert!(first.is_some());
        assert!(tests.begin(AppId(one)).is_none());
        assert!(tests.begin(AppId(two)).is_some());
        drop(first);
        assert!(tests.begin(AppId(one)).is_some());
    }
}
