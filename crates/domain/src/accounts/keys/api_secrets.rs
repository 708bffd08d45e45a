//! Additional API secrets of a subscriber, each with scopes. The main one has all of them, and manages these.

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::accounts::Accounts;
use crate::accounts::audit;
use mailgate_storage::api_secrets::{self, ApiSecretRow};
use mailgate_storage::subscribers;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{ApiSecretId, SubscriberId};
use mailgate_types::scope::Scope;
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{ApiSecret, NoRandomness};

/// The largest number of additional API secrets of a subscriber.
pub const MOST_API_SECRETS: i64 = 20;

/// Why an API secret was not created.
#[derive(Debug, thiserror::Error)]
pub enum ApiSecretError {
    /// The subscriber was deleted.
    #[error("the subscriber was deleted")]
    Gone,
    /// The subscriber has as many as it may have.
    #[error("you may have {MOST_API_SECRETS} additional API secrets at most; delete one first")]
    TooMany,
    /// No secret could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The secret could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// The fields of a new secret.
#[derive(Debug, Clone)]
pub struct NewApiSecret {
    /// Its name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Accounts {
    /// A subscriber's additional API secrets, oldest first.
    pub async fn api_secrets(
        &self,
        subscriber: SubscriberId,
    ) -> Result<Vec<ApiSecretRow>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        api_secrets::list(&mut connection, subscriber).await
    }

    /// Creates an additional API secret; this is the only time that its value exists.
    ///
    /// # Errors
    ///
    /// [`ApiSecretError`]; nothing is created then.
    pub async fn create_api_secret(
        &self,
        subscriber: SubscriberId,
        new: NewApiSecret,
        author: Author,
    ) -> Result<(ApiSecretRow, ApiSecret), ApiSecretError> {
        let now = self.clock.now();
        let id = ApiSecretId::at(now);
        let value = ApiSecret::generate()?;
        let lookup = self.additional_lookup(value.expose(), &hash_context(id))?;
        let secret = ApiSecretRow {
            id,
            name: new.name,
            scopes: new.scopes,
            created_at: now,
            last_used_at: None,
            expires_at: new.expires_at,
        };
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // One at a time, so that concurrent requests can't exceed the limit.
        let subscriber_there = subscribers::lock_fields(&mut transaction, subscriber).await?;
        if subscriber_there.is_none() {
            return Err(ApiSecretError::Gone);
        }
        if api_secrets::count(&mut transaction, subscriber).await? >= MOST_API_SECRETS {
            return Err(ApiSecretError::TooMany);
        }
        api_secrets::insert(&mut transaction, subscriber, &secret, &lookup).await?;
        let expires_at = secret.expires_at.map(|at| at.to_rfc3339());
        let entry = AuditEntry::of_subscriber(AuditAction::ApiSecretCreated, subscriber)
            .on(id)
            .with(json!({
                "name": secret.name, "scopes": secret.scopes, "expires_at": expires_at,
            }));
        transaction.commit_change(entry).await?;
        Ok((secret, value))
    }

    /// Deletes an additional API secret: it stops working immediately. `false` if there is none.
    pub async fn delete_api_secret(
        &self,
        subscriber: SubscriberId,
        id: ApiSecretId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        // Exclusively, so that repeated requests with that secret can't delay its deletion.
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(false);
        };
        let Some(name) = api_secrets::delete(&mut transaction, subscriber, id).await? else {
            return Ok(false);
        };
        let entry = AuditEntry::of_subscriber(AuditAction::ApiSecretDeleted, subscriber)
            .on(id)
            .with(json!({ "name": name }));
        transaction.commit_change(entry).await?;
        Ok(true)
    }
}

/// The context that the hash of an additional API secret is sealed for.
fn hash_context(id: ApiSecretId) -> String {
    format!("api_secrets.hash {}", id.0)
}
