//! Test deliveries: sent immediately, signed as any other, not retried, and listed among the deliveries.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::sign::SigningKeys;
use super::{Attempt, Delivery, WebhookConfig, Webhooks, secret_context, subscriber};
use crate::accounts::audit;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::webhook_deliveries;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::TestEvent;
use mailgate_types::ids::{EndpointId, WebhookDeliveryId, WebhookMessageId};

/// Why a test was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// Another test of the app is in progress.
    #[error("another test delivery of this app is in progress")]
    UnderWay,
    /// The configuration's secret can't be used.
    #[error("the webhook configuration's secret can't be unsealed")]
    Secret,
    /// The database's error.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

impl Webhooks {
    /// Sends a test delivery to a configuration, active or not, and returns its body and its outcome. One at a time per
    /// app, since the subscriber chooses the URL and may request any number of tests.
    ///
    /// # Errors
    ///
    /// [`TestError`]; nothing is sent then.
    pub async fn test(
        &self,
        config: &WebhookConfig,
        author: Author,
    ) -> Result<(TestEvent, Attempt), TestError> {
        let _place = self.tests.begin(config.app).ok_or(TestError::UnderWay)?;
        let context = secret_context(config.app, config.id.into());
        let keys = SigningKeys::unseal(&self.seal_keys, &context, &config.secrets);
        let keys = keys.ok_or(TestError::Secret)?;
        let now = self.clock.now();
        // Before it is sent, since that can't be undone.
        let entry = AuditEntry::of_app(AuditAction::WebhookTested, config.app).on(config.id);
        let transaction = audit::begin(&self.pool, author, now).await?;
        transaction.commit_change(entry).await?;
        let event = TestEvent {
            app: config.app,
            at: now,
        };
        let id = WebhookMessageId::at(now);
        let body = Bytes::from(event.body());
        let attempt = self
            .attempt_with(subscriber(author), &config.url, &keys, id, now, body)
            .await;
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
