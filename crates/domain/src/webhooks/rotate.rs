//! Replaces the secret of a configuration. The old one signs beside the new one for [`OVERLAP`], so that a receiver has
//! time to switch.

use chrono::{DateTime, TimeDelta, Utc};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use super::configurations::ConfigurationError;
use super::{Webhooks, secret_context};
use crate::accounts::audit;
use mailgate_storage::{apps, signing_secrets, webhook_configs};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{AppId, WebhookConfigId};
use mailgate_types::past::Past;
use mailgate_types::signing_secret::{OVERLAP, SigningSecret};

/// Secrets removed per statement.
const BATCH: i64 = 1_000;

/// How long the secrets of a deleted endpoint are kept at least; while deliveries to it wait, they stay.
const KEPT: TimeDelta = TimeDelta::days(2);

/// A configuration's new secret.
#[derive(Debug)]
pub struct RotatedSecret {
    /// The secret that signs from now on.
    pub secret: SigningSecret,
    /// The end of the previous one's overlap; `None` if there is none.
    pub previous_expires_at: Option<DateTime<Utc>>,
}

impl Webhooks {
    /// Replaces the secret of a configuration by `secret`, or by a generated one; `None` if the app has no such
    /// configuration. At most two secrets sign: if another was replaced less than [`OVERLAP`] ago, that one ends
    /// immediately. With its current secret nothing changes, so a call can be repeated.
    pub async fn rotate_secret(
        &self,
        app: AppId,
        id: WebhookConfigId,
        secret: Option<SigningSecret>,
        author: Author,
    ) -> Result<Option<RotatedSecret>, ConfigurationError> {
        let now = self.clock.now();
        let is_given = secret.is_some();
        let secret = match secret {
            Some(secret) => secret,
            None => SigningSecret::generate()?,
        };
        let context = secret_context(app, id.into());
        let sealed = self.seal_keys.seal(&context, secret.expose())?;
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // One at a time, so that a repeated call finds the secret of the first one.
        if apps::lock(&mut transaction, app).await?.is_none() {
            return Err(ConfigurationError::Gone);
        }
        let Some(config) = webhook_configs::find(&mut transaction, app, id).await? else {
            return Ok(None);
        };
        if is_given && is_same(&self.signing_secret(&config)?, &secret) {
            return Ok(Some(RotatedSecret {
                secret,
                previous_expires_at: config.secrets.previous_expires_at(now),
            }));
        }
        let expires_at = now + OVERLAP;
        webhook_configs::rotate_secret(&mut transaction, app, id, &sealed, expires_at, now).await?;
        let entry = AuditEntry::of_app(AuditAction::WebhookSecretRotated, app).on(id);
        transaction.commit_change(entry).await?;
        Ok(Some(RotatedSecret {
            secret,
            previous_expires_at: Some(expires_at),
        }))
    }

    /// Removes secrets that no longer sign, until none are left or `stop` is cancelled: previous ones that have
    /// expired, and those of deleted endpoints.
    pub async fn forget_secrets(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let past = Past::by(&self.clock);
        while !stop.is_cancelled()
            && signing_secrets::remove_expired(&mut connection, past, BATCH).await? > 0
        {}
        while !stop.is_cancelled()
            && signing_secrets::remove_deleted(&mut connection, past.before(KEPT), BATCH).await? > 0
        {
        }
        Ok(())
    }
}

fn is_same(one: &SigningSecret, other: &SigningSecret) -> bool {
    one.expose()
        .as_bytes()
        .ct_eq(other.expose().as_bytes())
        .into()
}
