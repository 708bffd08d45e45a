//! Creates subscribers.

use sqlx::PgConnection;

use crate::accounts::apps::create::{AppFields, CreateError};
use crate::accounts::keys::show::{AppCredentials, api_secret_context};
use crate::accounts::{Accounts, audit};
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::database::transaction;
use mailgate_storage::subscribers;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::SubscriberId;
use mailgate_types::secrets::ApiSecret;

/// A new subscriber, with the secret that only its owner may see.
#[derive(Debug)]
pub struct CreatedSubscriber {
    /// Its id.
    pub id: SubscriberId,
    /// Its API secret.
    pub api_secret: ApiSecret,
}

impl Accounts {
    /// Creates a subscriber, within the caller's transaction. If subscribers are billed, a worker creates its
    /// subscription after the commit.
    pub async fn create_subscriber(
        &self,
        connection: &mut PgConnection,
        label: &str,
        email: &str,
    ) -> Result<CreatedSubscriber, CreateError> {
        let now = self.clock.now();
        let id = SubscriberId::at(now);
        let api_secret = ApiSecret::generate()?;
        subscribers::insert(
            connection,
            &subscribers::NewSubscriber {
                id,
                label,
                email,
                api_secret_sealed: &self
                    .seal_keys
                    .seal(&api_secret_context(id), api_secret.expose())?,
                api_secret_digest: &self.seal_keys.lookup_digest(api_secret.expose()),
                subscription_status: self.beginning.status,
                created_at: now,
            },
        )
        .await?;
        if self.beginning.is_billed {
            billing_jobs::enqueue(connection, id, JobKind::Provision, None, now).await?;
        }
        Ok(CreatedSubscriber { id, api_secret })
    }

    /// Creates a subscriber.
    pub async fn sign_up(
        &self,
        label: &str,
        email: &EmailAddress,
        author: Author,
    ) -> Result<CreatedSubscriber, CreateError> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let created = self
            .create_subscriber(&mut transaction, label, email.as_str())
            .await?;
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberCreated, created.id);
        transaction.commit_change(entry).await?;
        Ok(created)
    }

    /// Creates a subscriber with one app, both or neither.
    pub async fn create_subscriber_with_app(
        &self,
        label: &str,
        email: &str,
        fields: &AppFields,
    ) -> Result<AppCredentials, CreateError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let subscriber = self
            .create_subscriber(&mut transaction, label, email)
            .await?;
        let app = self
            .create_app(&mut transaction, subscriber.id, fields)
            .await?;
        transaction.commit().await?;
        Ok(AppCredentials {
            subscriber: subscriber.id,
            api_secret: subscriber.api_secret,
            app: app.id,
            slug: app.slug,
            pushable_key: app.pushable_key,
            send_key: app.send_key,
        })
    }
}
