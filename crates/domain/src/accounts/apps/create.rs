//! Creates apps.

use serde_json::json;
use sqlx::PgConnection;

use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::keys::show::{send_key_context, webhook_secret_context};
use mailgate_storage::subscribers::limits;
use mailgate_storage::{apps, subscribers, webhook_messages};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::{AppEvent, Emission, Event};
use mailgate_types::ids::{AppId, SubscriberId, uuid_at};
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{NoRandomness, PushableKey, SendKey, WebhookSecret, random_bytes};
use mailgate_types::slug::slug;
use mailgate_types::subscriber_limit::SubscriberLimit;

/// Slugs tried for one app before giving up: a clash of four random characters is rare.
const SLUG_ATTEMPTS: usize = 16;

/// Lower case, to keep the slug valid.
const SLUG_SUFFIX: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Why nothing was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The database's error.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
    /// The operator has suspended the account, for this reason.
    #[error(
        "No app can be created: the operator of this gateway has suspended the account ({0}). Contact the operator to have it resumed"
    )]
    Suspended(String),
    /// The subscriber has reached its limit of apps.
    #[error("you may have {0} apps, and have no fewer; delete some first, or ask the operator")]
    TooMany(i64),
    /// No key could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// A key could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Every slug tried is taken.
    #[error("no free slug was found for the app's name")]
    NoFreeSlug,
}

/// A new app, with the secrets that only its owner may see.
#[derive(Debug)]
pub struct CreatedApp {
    /// Its id.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// Its public reference.
    pub pushable_key: PushableKey,
    /// The key for sending.
    pub send_key: SendKey,
    /// Signs webhooks to its `webhook_url`.
    pub webhook_secret: WebhookSecret,
}

/// The fields of a new app. URLs are empty if there is none.
#[derive(Debug, Clone, Default)]
pub struct AppFields {
    /// The name that the subscriber gave it, from which the slug is derived.
    pub name: String,
    /// Shown to end users.
    pub logo_url: String,
    /// Whether the app has several end users.
    pub multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub multilink: bool,
    /// Whether mailboxes can only be connected through connect sessions; `None` uses the value of `multiuser`.
    pub require_connect_session: Option<bool>,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: bool,
    /// Receives every event.
    pub webhook_url: String,
    /// Where end users go after connecting.
    pub callback_url: String,
}

impl AppFields {
    /// An app with only a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Whether mailboxes can only be connected through connect sessions.
    #[must_use]
    pub fn requires_connect_session(&self) -> bool {
        self.require_connect_session.unwrap_or(self.multiuser)
    }
}

impl Accounts {
    /// Creates an app for a subscriber.
    pub async fn create_own_app(
        &self,
        subscriber: SubscriberId,
        fields: &AppFields,
        author: Author,
    ) -> Result<CreatedApp, CreateError> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let mut transaction = begun.ok_or(sqlx::Error::RowNotFound)?;
        if let Some(suspension) = subscribers::suspension(&mut transaction, subscriber).await? {
            return Err(CreateError::Suspended(suspension.reason));
        }
        let own = limits::of(&mut transaction, subscriber).await?;
        let most = own.get(SubscriberLimit::Apps).unwrap_or(self.most_apps);
        if apps::count(&mut transaction, subscriber).await? >= most {
            return Err(CreateError::TooMany(most));
        }
        let created = self
            .create_app(&mut transaction, subscriber, fields)
            .await?;
        let entry = AuditEntry::of_app(AuditAction::AppCreated, created.id)
            .with(json!({ "name": fields.name, "webhook_url": fields.webhook_url }));
        transaction.commit_change(entry).await?;
        Ok(created)
    }

    /// Creates an app, within the caller's transaction. If the name's slug is taken, it gets a suffix. The event goes
    /// to its `webhook_url`, if any: no configuration can exist yet.
    pub async fn create_app(
        &self,
        connection: &mut PgConnection,
        subscriber: SubscriberId,
        fields: &AppFields,
    ) -> Result<CreatedApp, CreateError> {
        let now = self.clock.now();
        let id = AppId(uuid_at(now));
        let (pushable_key, send_key) = (PushableKey::generate()?, SendKey::generate()?);
        let webhook_secret = WebhookSecret::generate()?;
        let send_key_sealed = self
            .seal_keys
            .seal(&send_key_context(id), send_key.expose())?;
        let webhook_secret_sealed = self
            .seal_keys
            .seal(&webhook_secret_context(id), webhook_secret.expose())?;
        let base = slug(&fields.name);
        let mut candidate = base.clone();
        for _ in 0..SLUG_ATTEMPTS {
            let inserted = apps::insert(
                connection,
                &apps::NewApp {
                    id,
                    subscriber_id: subscriber,
                    slug: &candidate,
                    name: &fields.name,
                    pushable_key: pushable_key.expose(),
                    send_key_sealed: &send_key_sealed,
                    send_key_digest: &self.seal_keys.lookup_digest(send_key.expose()),
                    webhook_secret_sealed: &webhook_secret_sealed,
                    logo_url: &fields.logo_url,
                    multiuser: fields.multiuser,
                    multilink: fields.multilink,
                    require_connect_session: fields.requires_connect_session(),
                    suppress_bounced: fields.suppress_bounced,
                    webhook_url: &fields.webhook_url,
                    callback_url: &fields.callback_url,
                    created_at: now,
                },
            )
            .await?;
            if inserted {
                let event = Event::AppCreated(AppEvent {
                    app_id: id,
                    name: fields.name.clone(),
                });
                webhook_messages::emit(connection, &[Emission::of(id, event)], now).await?;
                return Ok(CreatedApp {
                    id,
                    slug: candidate,
                    pushable_key,
                    send_key,
                    webhook_secret,
                });
            }
            let suffix: String = random_bytes::<4>()?
                .iter()
                .map(|byte| char::from(SLUG_SUFFIX[usize::from(byte % 32)]))
                .collect();
            candidate = format!("{base}-{suffix}");
        }
        Err(CreateError::NoFreeSlug)
    }
}
