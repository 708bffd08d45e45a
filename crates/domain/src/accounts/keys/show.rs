//! Shows an app's credentials to their owner.

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};

use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::authenticate::hash;
use mailgate_storage::subscribers::{self, Subscriber};
use mailgate_storage::{apps, send_keys};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{AppId, CredentialId, SubscriberId};
use mailgate_types::seal::UnsealError;
use mailgate_types::secrets::{ApiSecret, PushableKey, SendKey, WebhookSecret};

/// Why credentials can't be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// A stored key can't be unsealed.
    #[error("a stored key can't be opened: {0}")]
    Unseal(#[from] UnsealError),
    /// A stored key is malformed.
    #[error("a stored key is malformed")]
    Form,
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// An app's credentials, and its subscriber's.
#[derive(Debug)]
pub struct AppCredentials {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The subscriber's credential.
    pub api_secret: ApiSecret,
    /// The app.
    pub app: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// Its public reference.
    pub pushable_key: PushableKey,
    /// The key for sending.
    pub send_key: SendKey,
}

/// The signing secrets of an app's `webhook_url`.
#[derive(Debug)]
pub struct WebhookSecrets {
    /// The current one.
    pub secret: WebhookSecret,
    /// The end of the previous one's overlap; `None` if there is none.
    pub previous_expires_at: Option<DateTime<Utc>>,
}

impl Accounts {
    /// Unseals one stored secret, if there is any: with sealing keys other than this database's, every key would
    /// appear to be invalid.
    pub async fn check_seal_keys(&self) -> Result<(), ShowError> {
        let newest = {
            let mut connection = self.pool.acquire().await?;
            subscribers::newest(&mut connection).await?
        };
        if let Some(subscriber) = newest {
            self.api_secret(&subscriber)?;
        }
        Ok(())
    }

    /// The current credentials of an app; `None` if there is no such app.
    pub async fn app_credentials(&self, app: AppId) -> Result<Option<AppCredentials>, ShowError> {
        let row = {
            let mut connection = self.pool.acquire().await?;
            apps::find_credentials(&mut connection, app).await?
        };
        let Some(row) = row else { return Ok(None) };
        let subscriber = row.subscriber_id;
        let unseal = |context: String, sealed: &[u8]| -> Result<SecretString, UnsealError> {
            self.seal_keys.unseal(&context, sealed)
        };
        let api_secret = unseal(api_secret_context(subscriber), &row.api_secret_sealed)?;
        let send_key = unseal(send_key_context(app), &row.send_key_sealed)?;
        Ok(Some(AppCredentials {
            subscriber,
            api_secret: ApiSecret::parse(api_secret.expose_secret()).ok_or(ShowError::Form)?,
            app,
            slug: row.slug,
            pushable_key: PushableKey::parse(&row.pushable_key).ok_or(ShowError::Form)?,
            send_key: SendKey::parse(send_key.expose_secret()).ok_or(ShowError::Form)?,
        }))
    }

    /// Whether the send key with this hash may still send from a mailbox of the app.
    pub async fn still_opens(
        &self,
        app: AppId,
        send_key_hash: &[u8],
        mailbox: CredentialId,
    ) -> Result<bool, ShowError> {
        let credentials = self.app_credentials(app).await?;
        if credentials.is_some_and(|it| hash(it.send_key.expose()) == send_key_hash) {
            return Ok(true);
        }
        let digests = self.additional_digests(send_key_hash);
        let mut connection = self.pool.acquire().await?;
        let now = self.clock.now();
        let key = send_keys::find_valid(&mut connection, app, &digests, now).await?;
        Ok(key.is_some_and(|key| {
            key.credential_ids.is_empty() || key.credential_ids.contains(&mailbox)
        }))
    }

    /// A subscriber's API secret, for the subscriber.
    ///
    /// # Errors
    ///
    /// If the stored secret can't be unsealed.
    pub fn api_secret(&self, subscriber: &Subscriber) -> Result<SecretString, ShowError> {
        Ok(self.seal_keys.unseal(
            &api_secret_context(subscriber.id),
            &subscriber.api_secret_sealed,
        )?)
    }

    /// A subscriber's API secret, shown in the portal: recorded in the audit trail.
    pub async fn reveal_api_secret(
        &self,
        subscriber: &Subscriber,
        author: Author,
    ) -> Result<SecretString, ShowError> {
        let secret = self.api_secret(subscriber)?;
        let entry = AuditEntry::of_subscriber(AuditAction::ApiSecretRevealed, subscriber.id);
        let transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        transaction.commit_change(entry).await?;
        Ok(secret)
    }

    /// An app's send key, shown in the portal; `None` if the app was deleted.
    pub async fn reveal_send_key(
        &self,
        app: AppId,
        author: Author,
    ) -> Result<Option<SendKey>, ShowError> {
        let shown = self.send_key(app).await?;
        if shown.is_some() {
            self.note(app, AuditAction::SendKeyRevealed, author).await?;
        }
        Ok(shown)
    }

    /// The signing secrets of an app's `webhook_url`, shown in the portal; `None` if the app was deleted.
    pub async fn reveal_webhook_secret(
        &self,
        app: AppId,
        author: Author,
    ) -> Result<Option<WebhookSecrets>, ShowError> {
        let shown = self.webhook_secret(app).await?;
        if shown.is_some() {
            let action = AuditAction::WebhookSecretRevealed;
            self.note(app, action, author).await?;
        }
        Ok(shown)
    }

    async fn note(
        &self,
        app: AppId,
        action: AuditAction,
        author: Author,
    ) -> Result<(), sqlx::Error> {
        let transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let entry = AuditEntry::of_app(action, app);
        transaction.commit_change(entry).await
    }

    /// An app's send key, for its subscriber; `None` if the app was deleted.
    pub async fn send_key(&self, app: AppId) -> Result<Option<SendKey>, ShowError> {
        let credentials = self.app_credentials(app).await?;
        Ok(credentials.map(|credentials| credentials.send_key))
    }

    /// The signing secrets of an app's `webhook_url`, for its subscriber; `None` if the app was deleted.
    pub async fn webhook_secret(&self, app: AppId) -> Result<Option<WebhookSecrets>, ShowError> {
        let sealed = {
            let mut connection = self.pool.acquire().await?;
            apps::find_webhook_secrets(&mut connection, app).await?
        };
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let secret = self
            .seal_keys
            .unseal(&webhook_secret_context(app), &sealed.current)?;
        let secret = WebhookSecret::parse(secret.expose_secret()).ok_or(ShowError::Form)?;
        Ok(Some(WebhookSecrets {
            secret,
            previous_expires_at: sealed.previous_expires_at(self.clock.now()),
        }))
    }
}

/// The context that a subscriber's API secret is sealed for.
pub(in crate::accounts) fn api_secret_context(subscriber: SubscriberId) -> String {
    format!("subscribers.api_secret {}", subscriber.0)
}

/// The context that an app's send key is sealed for.
pub(in crate::accounts) fn send_key_context(app: AppId) -> String {
    format!("apps.send_key {app}")
}

/// The context that an app's webhook secret is sealed for.
pub(in crate::accounts) fn webhook_secret_context(app: AppId) -> String {
    format!("apps.webhook_secret {app}")
}
