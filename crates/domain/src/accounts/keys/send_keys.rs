//! Send keys of an app: the main one, and additional ones that can do less. A change counts immediately at every
//! gateway, since it changes the app's version.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;

use crate::accounts::Accounts;
use crate::accounts::audit;
use mailgate_storage::apps;
use mailgate_storage::send_keys::{self, SendKeyRow};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::expires_at::Expiry;
use mailgate_types::ids::{AppId, CredentialId, SendKeyId};
use mailgate_types::networks::Networks;
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{NoRandomness, SendKey};

/// The largest number of additional send keys of an app.
pub const MOST_SEND_KEYS: i64 = 20;

/// The largest number of mailboxes that a key is restricted to.
pub const MOST_MAILBOXES_OF_A_KEY: usize = 100;

/// The name of the main key.
const MAIN: &str = "Main send key";

/// Why a send key was not created, changed or deleted.
#[derive(Debug, thiserror::Error)]
pub enum SendKeyError {
    /// The app was deleted.
    #[error("the app was deleted")]
    AppGone,
    /// The app has no such key.
    #[error("the app has no such send key")]
    NotFound,
    /// It is the main key.
    #[error("the main send key can be renewed, but not restricted or deleted")]
    Main,
    /// The app has reached its limit of keys.
    #[error("an app may have {MOST_SEND_KEYS} additional send keys at most; delete one first")]
    TooMany,
    /// Some of the mailboxes don't belong to the app.
    #[error("these mailboxes don't belong to the app")]
    ForeignMailboxes(Vec<CredentialId>),
    /// No key could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The key could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// The fields of a new key.
#[derive(Debug, Clone)]
pub struct NewSendKey {
    /// Its name.
    pub name: String,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// Where it may be used from.
    pub allowed: Networks,
    /// The mailboxes that it may send from; none: all.
    pub mailboxes: BTreeSet<CredentialId>,
}

/// Changes to a key; `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct SendKeyChange {
    /// Its name.
    pub name: Option<String>,
    /// When it stops working.
    pub expires_at: Option<Expiry>,
    /// Where it may be used from.
    pub allowed: Option<Networks>,
    /// The mailboxes that it may send from; none: all.
    pub mailboxes: Option<BTreeSet<CredentialId>>,
}

/// A key as its subscriber sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSendKey {
    /// Whether it is the app's main key.
    pub is_main: bool,
    /// The key.
    pub key: SendKeyRow,
}

impl Accounts {
    /// An app's send keys, the main one first; none if the app was deleted.
    pub async fn send_keys(&self, app: AppId) -> Result<Vec<ShownSendKey>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let Some((created_at, last_used_at)) = apps::send_key_times(&mut connection, app).await?
        else {
            return Ok(Vec::new());
        };
        let main = SendKeyRow {
            id: SendKeyId(app.0),
            name: MAIN.to_owned(),
            created_at,
            last_used_at,
            expires_at: None,
            allowed_addresses: Vec::new(),
            credential_ids: Vec::new(),
        };
        let others = send_keys::list(&mut connection, app).await?;
        let main = std::iter::once((true, main));
        let all = main.chain(others.into_iter().map(|key| (false, key)));
        Ok(all
            .map(|(is_main, key)| ShownSendKey { is_main, key })
            .collect())
    }

    /// Creates an additional key; this is the only time that its value exists.
    ///
    /// # Errors
    ///
    /// [`SendKeyError`]; nothing is created then.
    pub async fn create_send_key(
        &self,
        app: AppId,
        new: NewSendKey,
        author: Author,
    ) -> Result<(SendKeyRow, SendKey), SendKeyError> {
        let now = self.clock.now();
        let id = SendKeyId::at(now);
        let value = SendKey::generate()?;
        let lookup = self.additional_lookup(value.expose(), &hash_context(id))?;
        let key = SendKeyRow {
            id,
            name: new.name,
            created_at: now,
            last_used_at: None,
            expires_at: new.expires_at,
            allowed_addresses: new.allowed.texts(),
            credential_ids: new.mailboxes.into_iter().collect(),
        };
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        // One at a time, so that concurrent requests can't exceed the limit.
        lock(&mut transaction, app).await?;
        if send_keys::count(&mut transaction, app).await? >= MOST_SEND_KEYS {
            return Err(SendKeyError::TooMany);
        }
        let ids = &key.credential_ids;
        let foreign = send_keys::foreign_mailboxes(&mut transaction, app, ids).await?;
        if !foreign.is_empty() {
            return Err(SendKeyError::ForeignMailboxes(foreign));
        }
        send_keys::insert(&mut transaction, app, &key, &lookup).await?;
        let details = serde_json::to_value(key.recorded()).unwrap_or_default();
        let entry = AuditEntry::of_app(AuditAction::SendKeyCreated, app)
            .on(id)
            .with(details);
        transaction.commit_change(entry).await?;
        Ok((key, value))
    }

    /// Changes an additional key; returns the changed key.
    ///
    /// # Errors
    ///
    /// [`SendKeyError`]; nothing is changed then.
    pub async fn change_send_key(
        &self,
        app: AppId,
        id: SendKeyId,
        change: SendKeyChange,
        author: Author,
    ) -> Result<SendKeyRow, SendKeyError> {
        if id.0 == app.0 {
            return Err(SendKeyError::Main);
        }
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        lock(&mut transaction, app).await?;
        let before = send_keys::lock(&mut transaction, app, id).await?;
        let before = before.ok_or(SendKeyError::NotFound)?;
        let after = SendKeyRow {
            name: change.name.unwrap_or_else(|| before.name.clone()),
            expires_at: (change.expires_at).map_or(before.expires_at, Expiry::time),
            allowed_addresses: (change.allowed)
                .map_or_else(|| before.allowed_addresses.clone(), |it| it.texts()),
            credential_ids: (change.mailboxes).map_or_else(
                || before.credential_ids.clone(),
                |it| it.into_iter().collect(),
            ),
            ..before.clone()
        };
        let ids = &after.credential_ids;
        let foreign = send_keys::foreign_mailboxes(&mut transaction, app, ids).await?;
        if !foreign.is_empty() {
            return Err(SendKeyError::ForeignMailboxes(foreign));
        }
        if let Some(changed) = changed(&before.recorded(), &after.recorded()) {
            send_keys::update(&mut transaction, &after).await?;
            let entry = AuditEntry::of_app(AuditAction::SendKeyChanged, app);
            let entry = entry.on(id).with(changed);
            transaction.record(entry).await?;
        }
        transaction.commit().await?;
        Ok(after)
    }

    /// Deletes an additional key: it stops working immediately.
    ///
    /// # Errors
    ///
    /// [`SendKeyError`]; nothing is deleted then.
    pub async fn delete_send_key(
        &self,
        app: AppId,
        id: SendKeyId,
        author: Author,
    ) -> Result<(), SendKeyError> {
        if id.0 == app.0 {
            return Err(SendKeyError::Main);
        }
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        lock(&mut transaction, app).await?;
        let name = send_keys::delete(&mut transaction, app, id).await?;
        let name = name.ok_or(SendKeyError::NotFound)?;
        let entry = AuditEntry::of_app(AuditAction::SendKeyDeleted, app)
            .on(id)
            .with(json!({ "name": name }));
        Ok(transaction.commit_change(entry).await?)
    }
}

/// Locks the app before its keys, as its deletion does.
async fn lock(transaction: &mut PgConnection, app: AppId) -> Result<(), SendKeyError> {
    let locked = apps::lock(transaction, app).await?;
    locked.map(drop).ok_or(SendKeyError::AppGone)
}

/// The context that the hash of an additional send key is sealed for.
fn hash_context(id: SendKeyId) -> String {
    format!("send_keys.hash {}", id.0)
}
