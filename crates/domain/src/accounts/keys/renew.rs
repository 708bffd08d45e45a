//! Renews keys. The old value is invalid as soon as the new one is committed: each replica checks every presented key
//! against the database. Only webhook secrets overlap. With `last`, the mark of a key, it is renewed only while that is
//! still the current one.

use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgConnection;
use tracing::Instrument as _;
use uuid::Uuid;

use super::marks::{AppKey, is_current};
use super::minted::{self, Minted};
use super::show::{WebhookSecrets, api_secret_context, send_key_context, webhook_secret_context};
use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::audit::AuditedTransaction;
use crate::accounts::email_changes::chain::{Chain, chain};
use crate::accounts::email_changes::withdraw;
use mailgate_storage::{
    apps, audit_entries, billing_notices, portal_links, portal_sessions, subscribers,
    webhook_messages,
};
use mailgate_types::audit::{Actor, AuditAction, AuditEntry, Author};
use mailgate_types::event::{Emission, Event};
use mailgate_types::ids::{AppId, PortalSessionId, SubscriberId};
use mailgate_types::notice::{Notice, RenewalReader};
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{ApiSecret, NoRandomness, PushableKey, SendKey, WebhookSecret};
use mailgate_types::signing_secret::OVERLAP;

/// Why nothing was renewed.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// Its owner was deleted.
    #[error("the owner of the key was deleted")]
    Gone,
    /// The API secret has reached its limit of renewals within [`COUNTED`].
    #[error("the API secret was renewed too often")]
    TooOften,
    /// Another renewal that also revokes is in progress.
    #[error("another renewal is in progress")]
    UnderWay,
    /// The address to be restored can no longer be restored.
    #[error("the address can no longer be restored")]
    EmailMoved,
    /// The key to be renewed is no longer the current one.
    #[error("the key was already renewed")]
    Before,
    /// No key could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The key could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The task ended early.
    #[error("the renewal was interrupted")]
    CutOff,
}

/// Keeps an app's key as it is until the transaction ends; with `last`, only that one.
async fn lock(
    connection: &mut PgConnection,
    app: AppId,
    key: AppKey,
    last: Option<&str>,
) -> Result<(), RenewError> {
    let keys = apps::lock_keys(connection, app).await?;
    if is_current(last, key.of(&keys.ok_or(RenewError::Gone)?)) {
        Ok(())
    } else {
        Err(RenewError::Before)
    }
}

/// The address that a renewal restores after a recent change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RestoredEmail {
    /// None: it stays changed.
    #[default]
    None,
    /// The former one, if there is any.
    Former,
    /// This former one.
    Only(String),
}

/// The options of a renewal of an API secret.
#[derive(Debug, Clone, Default)]
pub struct Renewal {
    /// The mark of the secret to be renewed; `None`: any.
    pub last: Option<String>,
    /// The portal session that renews it: all others end.
    pub kept: Option<PortalSessionId>,
    /// Whether everything created with this secret and former ones ends.
    pub revokes: bool,
    /// The address to be restored.
    pub restores: RestoredEmail,
    /// Whether it is done by a visitor with a mailed link, who has no limit of renewals, like the operator.
    pub is_by_mail: bool,
}

impl Renewal {
    /// A renewal that revokes, and restores a changed address unless it is kept.
    #[must_use]
    pub fn ending_all(keeps_email: bool) -> Self {
        Self {
            revokes: true,
            restores: if keeps_email {
                RestoredEmail::None
            } else {
                RestoredEmail::Former
            },
            ..Self::default()
        }
    }
}

/// Renewals of a subscriber that continue without their clients; all but one are by mailed links.
pub(in crate::accounts) const MOST_UNCUT: usize = 3;

/// Renewals within [`COUNTED`]. Each ends all sessions and links of the portal: unlimited renewals with a stolen secret
/// would keep its owner out.
const MOST: i64 = 60;

/// Renewals within [`COUNTED`] that are notified by mail.
const MOST_TOLD: i64 = 10;

/// The time in which renewals are counted.
const COUNTED: TimeDelta = TimeDelta::hours(24);

impl Accounts {
    /// Renews the API secret; returns everything created with it and former ones. Other sessions of the portal end, and
    /// the account's address is notified by mail. Requests in progress that the old one authenticated can change
    /// nothing any more. A renewal that revokes runs to completion even if the caller is cancelled.
    pub async fn renew_api_secret(
        &self,
        subscriber: SubscriberId,
        renewal: Renewal,
        author: Author,
    ) -> Result<(ApiSecret, Minted), RenewError> {
        if !renewal.revokes {
            return self.replace_api_secret(subscriber, renewal, author).await;
        }
        let accounts = self.clone();
        let renewing = async move {
            accounts
                .replace_api_secret(subscriber, renewal, author)
                .await
        };
        self.uncut(subscriber, 1, renewing).await
    }

    /// Runs a renewal to completion even if the caller is cancelled, unless `most` of the subscriber's are in progress:
    /// it continues without its client, and so without the place of its request.
    pub(in crate::accounts) async fn uncut<
        T: Send + 'static,
        E: From<RenewError> + Send + 'static,
    >(
        &self,
        subscriber: SubscriberId,
        most: usize,
        renewing: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        let place = self.renewing.join(subscriber, most);
        let place = place.ok_or(RenewError::UnderWay)?;
        let renewing = async move {
            let _place = place;
            renewing.await
        };
        let renewing = self.tracker.spawn(renewing.in_current_span()).await;
        renewing.map_err(|_| RenewError::CutOff)?
    }

    /// A renewal by a mailed link, within the transaction of the link's action; `kept` is the portal session that
    /// stays.
    pub(in crate::accounts) async fn renew_by_mail(
        &self,
        transaction: &mut AuditedTransaction,
        subscriber: SubscriberId,
        renewal: Renewal,
        kept: Option<PortalSessionId>,
        author: Author,
    ) -> Result<ApiSecret, RenewError> {
        let renewal = Renewal {
            kept,
            is_by_mail: true,
            ..renewal
        };
        let renewed = self.replace_within(transaction, subscriber, renewal, author);
        renewed.await.map(|(secret, _)| secret)
    }

    async fn replace_api_secret(
        &self,
        subscriber: SubscriberId,
        renewal: Renewal,
        author: Author,
    ) -> Result<(ApiSecret, Minted), RenewError> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let mut transaction = begun.ok_or(RenewError::Gone)?;
        let renewed = self.replace_within(&mut transaction, subscriber, renewal, author);
        let renewed = renewed.await?;
        transaction.commit().await?;
        Ok(renewed)
    }

    /// The renewal, within a transaction with an exclusive lock on the subscriber.
    async fn replace_within(
        &self,
        transaction: &mut AuditedTransaction,
        subscriber: SubscriberId,
        renewal: Renewal,
        author: Author,
    ) -> Result<(ApiSecret, Minted), RenewError> {
        let secret = ApiSecret::generate()?;
        let sealed = self
            .seal_keys
            .seal(&api_secret_context(subscriber), secret.expose())?;
        let digest = self.seal_keys.lookup_digest(secret.expose());
        // Taken after the wait for the lock: items created meanwhile are from before the renewal.
        let now = self.clock.now();
        let stored = subscribers::stored_api_secret(transaction, subscriber).await?;
        let (stored, since) = stored.ok_or(RenewError::Gone)?;
        if !is_current(renewal.last.as_deref(), &stored) {
            return Err(RenewError::Before);
        }
        let action = AuditAction::ApiSecretRenewed;
        let day = now - COUNTED;
        let of_late = audit_entries::count(transaction, subscriber, action, day, MOST).await?;
        if of_late >= MOST && !renewal.is_by_mail && author.actor != Actor::Operator {
            return Err(RenewError::TooOften);
        }
        let minted = minted::read(transaction, subscriber, since, now).await?;
        withdraw(transaction, subscriber, now).await?;
        let mut chain = chain(transaction, subscriber, now).await?;
        if renewal.revokes {
            minted::revoke(transaction, subscriber, &minted, now).await?;
        }
        if let RestoredEmail::Only(email) = &renewal.restores
            && chain.as_ref().map(|chain| &chain.begun.former_email) != Some(email)
        {
            return Err(RenewError::EmailMoved);
        }
        if renewal.restores != RestoredEmail::None
            && let Some(Chain { begun, .. }) = chain.take()
        {
            self.restore_email(transaction, &begun, author, now).await?;
        }
        subscribers::replace_api_secret(transaction, subscriber, &sealed, &digest, now).await?;
        portal_links::delete_of(transaction, subscriber).await?;
        portal_sessions::delete_others(transaction, subscriber, renewal.kept).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::ApiSecretRenewed, subscriber);
        let entry = entry.with(json!({ "revoked": renewal.revokes }));
        let fields = subscribers::lock_fields(transaction, subscriber).await?;
        let email = fields.and_then(|fields| fields.email);
        // With the current address: a holder of the old secret may change it before the mail is sent.
        let former = chain.map(|chain| chain.begun.former_email);
        let reader = if former.is_some() {
            RenewalReader::New
        } else {
            RenewalReader::Established
        };
        let recipients = [(email, reader), (former, RenewalReader::Former)].into_iter();
        let recipients = recipients.filter_map(|(to, reader)| Some((to?, reader)));
        for (to, reader) in recipients.filter(|_| of_late < MOST_TOLD) {
            let notice = Notice::ApiSecretRenewed {
                at: now,
                address: author.address,
                to: Some(to),
                reader,
            };
            let event = format!("api_secret.renewed {}", Uuid::new_v4());
            billing_notices::insert(transaction, subscriber, &event, &notice, now).await?;
        }
        transaction.record(entry).await?;
        Ok((secret, minted))
    }

    /// Renews the send key, and emits an event to the app's endpoints.
    pub async fn renew_send_key(
        &self,
        app: AppId,
        last: Option<&str>,
        author: Author,
    ) -> Result<SendKey, RenewError> {
        let key = SendKey::generate()?;
        let sealed = self.seal_keys.seal(&send_key_context(app), key.expose())?;
        let digest = self.seal_keys.lookup_digest(key.expose());
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        lock(&mut transaction, app, AppKey::Send, last).await?;
        if !apps::replace_send_key(&mut transaction, app, &sealed, &digest, now).await? {
            return Err(RenewError::Gone);
        }
        let renewed = Emission::of(app, Event::SendKeyRenewed { app_id: app });
        webhook_messages::emit(&mut transaction, &[renewed], now).await?;
        let entry = AuditEntry::of_app(AuditAction::SendKeyRenewed, app);
        transaction.commit_change(entry).await?;
        Ok(key)
    }

    /// Renews the secret of the app's `webhook_url`; pending deliveries there are signed with it too. The old one
    /// signs beside it for [`OVERLAP`]; an even older one ends immediately.
    pub async fn renew_webhook_secret(
        &self,
        app: AppId,
        last: Option<&str>,
        author: Author,
    ) -> Result<WebhookSecrets, RenewError> {
        let now = self.clock.now();
        let previous_expires_at = now + OVERLAP;
        let secret = WebhookSecret::generate()?;
        let sealed = self
            .seal_keys
            .seal(&webhook_secret_context(app), secret.expose())?;
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        lock(&mut transaction, app, AppKey::Webhook, last).await?;
        let rotated =
            apps::rotate_webhook_secret(&mut transaction, app, &sealed, previous_expires_at);
        if !rotated.await? {
            return Err(RenewError::Gone);
        }
        let entry = AuditEntry::of_app(AuditAction::WebhookSecretRenewed, app);
        transaction.commit_change(entry).await?;
        Ok(WebhookSecrets {
            secret,
            previous_expires_at: Some(previous_expires_at),
        })
    }

    /// Renews the pushable key; connect links with the old one no longer work.
    pub async fn renew_pushable_key(
        &self,
        app: AppId,
        last: Option<&str>,
        author: Author,
    ) -> Result<PushableKey, RenewError> {
        let key = PushableKey::generate()?;
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        lock(&mut transaction, app, AppKey::Pushable, last).await?;
        if !apps::replace_pushable_key(&mut transaction, app, key.expose()).await? {
            return Err(RenewError::Gone);
        }
        let entry = AuditEntry::of_app(AuditAction::PushableKeyRenewed, app);
        transaction.commit_change(entry).await?;
        Ok(key)
    }
}
