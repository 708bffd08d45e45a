//! Redelivers a message at a subscriber's request.

use serde_json::json;

use super::Webhooks;
use crate::accounts::audit;
use mailgate_storage::webhook_deliveries;
use mailgate_storage::webhook_queue::requeue::{Requeued, receives, requeue};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{
    AppId, EndpointId, WebhookConfigId, WebhookDeliveryId, WebhookMessageId,
};

/// Why a delivery can't be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RedeliverError {
    /// The endpoint has no such delivery.
    #[error("there is no such delivery")]
    NotFound,
    /// The app has no `webhook_url`.
    #[error("the app has no webhook_url")]
    NoUrl,
    /// Its message is being delivered to the endpoint at this moment.
    #[error("this message is being delivered at this moment")]
    InFlight,
    /// A replay of the endpoint is being queued at this moment.
    #[error("a replay is in progress")]
    Replaying,
    /// Its body has expired.
    #[error("the body of this message is no longer kept")]
    Gone,
    /// The database's error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A message that was queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redelivered {
    /// The webhook-id, as before.
    pub message: WebhookMessageId,
    /// The number that the attempt will have.
    pub attempt_number: i32,
}

impl Webhooks {
    /// Delivers the message of an earlier delivery to its configuration again, or without one to the app's own
    /// `webhook_url`, immediately: under the same webhook-id, as its next attempt, followed by the remaining attempts
    /// of the schedule.
    pub async fn redeliver(
        &self,
        app: AppId,
        config: Option<WebhookConfigId>,
        delivery: WebhookDeliveryId,
        author: Author,
    ) -> Result<Redelivered, RedeliverError> {
        let endpoint = config.map_or_else(|| EndpointId::from(app), EndpointId::from);
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        let message = webhook_deliveries::message_of(&mut transaction, app, endpoint, delivery)
            .await?
            .ok_or(RedeliverError::NotFound)?;
        if config.is_none() && receives(&mut transaction, app, endpoint).await? != Some(true) {
            return Err(RedeliverError::NoUrl);
        }
        match requeue(&mut transaction, app, endpoint, message, now).await? {
            Requeued::Due(attempt_number) => {
                let entry = AuditEntry::of_app(AuditAction::WebhookRedelivered, app)
                    .on(delivery)
                    .with(json!({
                        "webhook_id": config.map(|config| config.to_string()),
                        "attempt_number": attempt_number,
                    }));
                transaction.commit_change(entry).await?;
                Ok(Redelivered {
                    message,
                    attempt_number,
                })
            }
            Requeued::InFlight => Err(RedeliverError::InFlight),
            Requeued::Replaying => Err(RedeliverError::Replaying),
            Requeued::Gone => Err(RedeliverError::Gone),
        }
    }
}
