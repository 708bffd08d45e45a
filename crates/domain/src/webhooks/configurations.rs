//! Webhook configurations: the endpoints that a subscriber configures for an app. Events queued before a
//! configuration is changed or deleted are still delivered.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde_json::json;

use super::{Webhooks, secret_context};
use crate::accounts::audit;
use mailgate_storage::apps;
use mailgate_storage::signing_secrets::SealedSecrets;
use mailgate_storage::webhook_configs::{self, ListedConfig};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, WebhookConfigId};
use mailgate_types::seal::{SealError, UnsealError};
use mailgate_types::secrets::NoRandomness;
use mailgate_types::signing_secret::{SecretEncoding, SigningSecret};

pub use mailgate_storage::webhook_configs::{WebhookConfig, WebhookConfigChange};

/// The largest number of configurations of an app: each one costs a delivery of every event that it lists.
pub const MOST_CONFIGURATIONS: i64 = 20;

/// Why a configuration was not created, or can't be shown.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The app was deleted.
    #[error("the app was deleted")]
    Gone,
    /// The app has reached its limit of configurations.
    #[error(
        "an app may have {MOST_CONFIGURATIONS} webhook configurations at most; delete one first"
    )]
    TooMany,
    /// No secret could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The secret could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A stored secret can't be unsealed.
    #[error("a stored webhook secret can't be opened: {0}")]
    Unseal(#[from] UnsealError),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// The fields of a new configuration.
#[derive(Debug)]
pub struct NewConfiguration {
    /// The endpoint's URL.
    pub url: String,
    /// The events that it receives, each once.
    pub events: Vec<EventName>,
    /// The signing secret; `None` generates one.
    pub secret: Option<SigningSecret>,
    /// Whether it is active.
    pub is_active: bool,
}

/// A configuration as its subscriber sees it.
#[derive(Debug)]
pub struct Configuration {
    /// The stored configuration.
    pub config: WebhookConfig,
    /// Enough of the secret to recognize it.
    pub truncated_secret: String,
    /// The derivation of the signing key from the secret.
    pub secret_encoding: SecretEncoding,
    /// The end of the previous secret's overlap; `None` if it has ended.
    pub previous_secret_expires_at: Option<DateTime<Utc>>,
    /// When the last delivery attempt began.
    pub last_triggered_at: Option<DateTime<Utc>>,
    /// The fraction of delivery attempts for events of the last 7 days that the receiver accepted, 0 to 1; 1 if there
    /// were none.
    pub success_rate_7d: f64,
}

impl Webhooks {
    /// Creates a configuration; this is the only time that its secret is shown.
    ///
    /// # Errors
    ///
    /// [`ConfigurationError`]; nothing is created then.
    pub async fn create_configuration(
        &self,
        app: AppId,
        new: NewConfiguration,
        author: Author,
    ) -> Result<(WebhookConfig, SigningSecret), ConfigurationError> {
        let now = self.clock.now();
        let id = WebhookConfigId::at(now);
        let secret = match new.secret {
            Some(secret) => secret,
            None => SigningSecret::generate()?,
        };
        let config = WebhookConfig {
            id,
            app,
            url: new.url,
            events: new.events,
            is_active: new.is_active,
            secrets: SealedSecrets {
                current: (self.seal_keys).seal(&secret_context(app, id.into()), secret.expose())?,
                previous: None,
            },
            created_at: now,
            updated_at: now,
        };
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // One at a time, so that concurrent requests can't exceed the limit.
        if apps::lock(&mut transaction, app).await?.is_none() {
            return Err(ConfigurationError::Gone);
        }
        if webhook_configs::count(&mut transaction, app).await? >= MOST_CONFIGURATIONS {
            return Err(ConfigurationError::TooMany);
        }
        webhook_configs::insert(&mut transaction, &config).await?;
        let entry = AuditEntry::of_app(AuditAction::WebhookCreated, app)
            .on(id)
            .with(json!({
                "url": config.url, "events": config.events, "is_active": config.is_active,
            }));
        transaction.commit_change(entry).await?;
        Ok((config, secret))
    }

    /// An app's configurations, oldest first.
    pub async fn configurations(
        &self,
        app: AppId,
    ) -> Result<Vec<Configuration>, ConfigurationError> {
        let week_ago = self.clock.now() - TimeDelta::days(7);
        // Counters are per hour.
        let since = week_ago
            .duration_trunc(TimeDelta::hours(1))
            .unwrap_or(week_ago);
        let listed = {
            let mut connection = self.pool.acquire().await?;
            webhook_configs::list(&mut connection, app, since).await?
        };
        listed
            .into_iter()
            .map(|listed| self.shown(listed))
            .collect()
    }

    fn shown(&self, listed: ListedConfig) -> Result<Configuration, ConfigurationError> {
        let secret = self.signing_secret(&listed.config)?;
        Ok(Configuration {
            truncated_secret: secret.truncated(),
            secret_encoding: secret.encoding(),
            previous_secret_expires_at: (listed.config.secrets)
                .previous_expires_at(self.clock.now()),
            config: listed.config,
            last_triggered_at: listed.last_triggered_at,
            success_rate_7d: rate(listed.successes, listed.attempts),
        })
    }

    /// The signing secret of a configuration.
    pub(super) fn signing_secret(
        &self,
        config: &WebhookConfig,
    ) -> Result<SigningSecret, UnsealError> {
        let place = secret_context(config.app, config.id.into());
        let secret = self.seal_keys.unseal(&place, &config.secrets.current)?;
        Ok(SigningSecret::from(secret))
    }

    /// One configuration of an app.
    pub async fn configuration(
        &self,
        app: AppId,
        id: WebhookConfigId,
    ) -> Result<Option<WebhookConfig>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        webhook_configs::find(&mut connection, app, id).await
    }

    /// Changes a configuration and returns its new state; `None` if the app has none with this id.
    pub async fn change_configuration(
        &self,
        app: AppId,
        id: WebhookConfigId,
        change: &WebhookConfigChange,
        author: Author,
    ) -> Result<Option<WebhookConfig>, sqlx::Error> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // One at a time, so that each change is recorded with its own difference.
        apps::lock(&mut transaction, app).await?;
        let Some(before) = webhook_configs::find(&mut transaction, app, id).await? else {
            return Ok(None);
        };
        let after = webhook_configs::update(&mut transaction, app, id, change, now).await?;
        let before = WebhookConfigChange {
            url: Some(before.url),
            events: Some(before.events),
            is_active: Some(before.is_active),
        };
        if let Some(changed) = changed(&before, change) {
            let entry = AuditEntry::of_app(AuditAction::WebhookChanged, app);
            transaction.record(entry.on(id).with(changed)).await?;
        }
        transaction.commit().await?;
        match (
            before.is_active,
            after.as_ref().map(|after| after.is_active),
        ) {
            (Some(true), Some(false)) => {
                tracing::info!(webhook_id = %id, app_id = %app, "a webhook configuration is switched off");
            }
            (Some(false), Some(true)) => {
                tracing::info!(webhook_id = %id, app_id = %app, "a webhook configuration is switched on");
            }
            _ => {}
        }
        Ok(after)
    }

    /// Deletes a configuration; `false` if the app has none with this id. It receives no events from now on.
    pub async fn delete_configuration(
        &self,
        app: AppId,
        id: WebhookConfigId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let Some(url) = webhook_configs::delete(&mut transaction, app, id).await? else {
            return Ok(false);
        };
        let entry = AuditEntry::of_app(AuditAction::WebhookDeleted, app)
            .on(id)
            .with(json!({ "url": url }));
        transaction.commit_change(entry).await?;
        Ok(true)
    }
}

/// The fraction of successful attempts; 1 if there were none, since nothing has failed.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a week are far from 2^52"
)]
fn rate(successes: i64, attempts: i64) -> f64 {
    if attempts == 0 {
        1.0
    } else {
        successes as f64 / attempts as f64
    }
}
