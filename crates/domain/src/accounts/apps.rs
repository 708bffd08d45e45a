//! A subscriber's apps: listed, found, changed.

pub(crate) mod create;
pub(crate) mod suppressions;

use super::Accounts;
use super::audit;
use mailgate_storage::apps::{self, App, Change, NamedApp};
use mailgate_storage::mailboxes;
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::ids::{AppId, SubscriberId};

/// Why an app was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The app was deleted.
    #[error("the app was deleted")]
    Gone,
    /// Mailboxes would be left without an end user.
    #[error("{0} can't be turned off: connected mailboxes would be left without a user")]
    WouldOrphan(&'static str),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// The subscriber's apps, oldest first.
    pub async fn apps(
        &self,
        subscriber: SubscriberId,
        limit: Option<i64>,
        offset: i64,
    ) -> Result<Vec<App>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        apps::list(&mut connection, subscriber, limit, offset).await
    }

    /// The subscriber's first `limit` apps to choose from, and the one with this slug or pushable key.
    pub async fn named_apps(
        &self,
        subscriber: SubscriberId,
        limit: i64,
        chosen: Option<&str>,
    ) -> Result<Vec<NamedApp>, sqlx::Error> {
        // Postgres holds no NUL.
        let chosen = chosen.filter(|chosen| !chosen.contains('\0'));
        let mut connection = self.pool.acquire().await?;
        apps::named(&mut connection, subscriber, limit, chosen).await
    }

    /// Whether a mailbox is connected to any of the subscriber's apps.
    pub async fn has_mailbox(&self, subscriber: SubscriberId) -> Result<bool, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        apps::has_mailbox(&mut connection, subscriber).await
    }

    /// The subscriber's app with this pushable key; another subscriber's is not found.
    pub async fn own_app(
        &self,
        subscriber: SubscriberId,
        pushable_key: &str,
    ) -> Result<Option<App>, sqlx::Error> {
        // Postgres holds no NUL.
        if pushable_key.contains('\0') {
            return Ok(None);
        }
        let mut connection = self.pool.acquire().await?;
        apps::find_owned(&mut connection, subscriber, pushable_key).await
    }

    /// The subscriber's app with this UUID, slug or pushable key; another subscriber's is not found.
    pub async fn own_app_by_name(
        &self,
        subscriber: SubscriberId,
        name: &str,
    ) -> Result<Option<App>, sqlx::Error> {
        // Postgres holds no NUL.
        if name.contains('\0') {
            return Ok(None);
        }
        let id = name.parse().ok().map(AppId);
        let mut connection = self.pool.acquire().await?;
        apps::find_owned_by_name(&mut connection, subscriber, id, name).await
    }

    /// Changes an app, unless that would orphan mailboxes.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; nothing is changed then.
    pub async fn change_app(
        &self,
        app: AppId,
        change: &Change,
        author: Author,
    ) -> Result<(), ChangeError> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let before = apps::lock_fields(&mut transaction, app)
            .await?
            .ok_or(ChangeError::Gone)?;
        if change.multiuser == Some(false)
            && mailboxes::has_named_users(&mut transaction, app).await?
        {
            return Err(ChangeError::WouldOrphan("multiuser"));
        }
        if change.multilink == Some(false)
            && mailboxes::has_several_links(&mut transaction, app).await?
        {
            return Err(ChangeError::WouldOrphan("multilink"));
        }
        // An app that becomes multiuser gets the defaults of a new multiuser app.
        let becomes_multiuser = change.multiuser == Some(true) && before.multiuser == Some(false);
        let change = &Change {
            require_connect_session: change
                .require_connect_session
                .or(becomes_multiuser.then_some(true)),
            ..change.clone()
        };
        apps::update(&mut transaction, app, change).await?;
        if let Some(changed) = changed(&before, change) {
            let entry = AuditEntry::of_app(AuditAction::AppChanged, app).with(changed);
            transaction.record(entry).await?;
        }
        Ok(transaction.commit().await?)
    }
}
