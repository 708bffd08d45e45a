//! Floor 2: outgoing webhooks. What happens is written for those who listen in the transaction that makes
//! it happen (`storage::webhook_messages`); here it is signed and delivered.

mod claim;
mod configurations;
mod deliveries;
mod dispatch;
mod lanes;
mod recorder;
mod retry;
mod schedule;
mod sign;
mod test;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use secrecy::SecretString;
use sqlx::PgPool;
use tokio::sync::Notify;

pub use self::configurations::{
    Configuration, ConfigurationError, NewConfiguration, WebhookConfig, WebhookConfigChange,
};
pub use self::deliveries::{Delivery, DeliveryFilter, DeliveryTotals};
pub use self::retry::{Retried, RetryError};
use self::sign::SigningKey;
pub use self::test::TestError;
use self::test::TestsUnderWay;
use crate::config::WebhookSettings;
use crate::providers::egress::{Egress, EgressError, EgressSetupError};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, EndpointId, WebhookMessageId};
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

/// What came of one attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What the receiver answered; `None`: no answer came.
    pub http_status: Option<u16>,
    /// The beginning of its answer, 16 KiB at most.
    pub response_body: String,
    /// How long it took.
    pub duration_ms: i64,
    /// Whether the receiver took it: 2xx.
    pub success: bool,
    /// Why it failed, in a sentence for the subscriber.
    pub error_message: Option<String>,
    /// The wait that the receiver asks for, where it failed.
    pub retry_after: Option<std::time::Duration>,
    /// Whether no further attempt can change it: the URL is refused, or the receiver says 410 Gone.
    pub is_final: bool,
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

    /// Signs and posts a body once. Nothing is recorded.
    pub async fn attempt(
        &self,
        url: &str,
        secret: &SecretString,
        id: WebhookMessageId,
        body: Bytes,
    ) -> Attempt {
        match SigningKey::new(secret) {
            Some(key) => self.attempt_with(url, &key, id, body).await,
            None => Attempt::failed("the secret can't sign".to_owned(), 0, true),
        }
    }

    async fn attempt_with(
        &self,
        url: &str,
        key: &SigningKey,
        id: WebhookMessageId,
        body: Bytes,
    ) -> Attempt {
        let now = self.clock.now();
        let headers = key.headers(id, now.timestamp(), &body);
        let began = Instant::now();
        let outcome = self.egress.post(url, headers, body, now).await;
        let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        match outcome {
            Ok(answer) => {
                let success = (200..300).contains(&answer.status);
                Attempt {
                    http_status: Some(answer.status),
                    response_body: answer.body,
                    duration_ms,
                    success,
                    error_message: (!success).then(|| refused_by_status(answer.status)),
                    retry_after: answer.retry_after.filter(|_| !success),
                    is_final: answer.status == 410,
                }
            }
            Err(error) => Attempt::failed(
                error.to_string(),
                duration_ms,
                matches!(error, EgressError::Refused(_)),
            ),
        }
    }
}

impl Attempt {
    /// One that got no answer.
    fn failed(error: String, duration_ms: i64, is_final: bool) -> Self {
        Self {
            http_status: None,
            response_body: String::new(),
            duration_ms,
            success: false,
            error_message: Some(error),
            retry_after: None,
            is_final,
        }
    }
}

fn refused_by_status(status: u16) -> String {
    match status {
        300..=399 => {
            format!("the receiver answered with HTTP status {status}: redirects are not followed")
        }
        410 => "the receiver answered with HTTP status 410, so there are no further attempts"
            .to_owned(),
        _ => format!("the receiver answered with HTTP status {status}"),
    }
}
