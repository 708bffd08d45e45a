//! A subscriber's own apps.

use super::Accounts;
use crate::storage::apps::{self, App, Change};
use crate::storage::billing_jobs::{self, JobKind};
use crate::storage::subscribers::{self, Subscriber, billing};
use crate::storage::{deleted_apps, email_counters, mailboxes};
use crate::types::ids::{AppId, Owner, SubscriberId};

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The app is gone.
    #[error("the app is gone")]
    Gone,
    /// Mailboxes would belong to nobody any more.
    #[error("{0} can't be changed while mailboxes are connected that it would orphan")]
    WouldOrphan(&'static str),
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// The subscriber's apps, the oldest first.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn apps(
        &self,
        subscriber: SubscriberId,
        limit: Option<i64>,
        offset: i64,
    ) -> Result<Vec<App>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        apps::list(&mut connection, subscriber, limit, offset).await
    }

    /// The subscriber's app with this pushable key; another's is not found.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn own_app(
        &self,
        subscriber: SubscriberId,
        pushable_key: &str,
    ) -> Result<Option<App>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        apps::find_owned(&mut connection, subscriber, pushable_key).await
    }

    /// Changes an app, unless that would orphan mailboxes.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; nothing is changed then.
    pub async fn change_app(&self, app: AppId, change: &Change) -> Result<(), ChangeError> {
        let mut transaction = self.pool.begin().await?;
        if apps::lock(&mut transaction, app).await?.is_none() {
            return Err(ChangeError::Gone);
        }
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
        apps::update(&mut transaction, app, change).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// All subscribers, the oldest first.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn subscribers(&self) -> Result<Vec<Subscriber>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        subscribers::list(&mut connection).await
    }

    /// Removes a subscriber with its apps; `false` when there was none. What they left in the log is
    /// removed later, and where it is billed, a worker ends its subscription.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn delete_subscriber(&self, id: SubscriberId) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let account = billing::find(&mut transaction, id).await?;
        let now = self.clock.now();
        deleted_apps::insert_all_of(&mut transaction, id, now).await?;
        email_counters::lock(&mut transaction).await?;
        email_counters::remove(&mut transaction, Owner::Subscriber(id)).await?;
        let deleted = subscribers::delete(&mut transaction, id).await?;
        // After the subscriber: whoever connects a mailbox holds an app while it waits for these.
        billing_jobs::forget(&mut transaction, id).await?;
        if let Some(customer) = account.and_then(|account| account.customer_id) {
            let kind = JobKind::End;
            billing_jobs::enqueue(&mut transaction, id, kind, Some(&customer), now).await?;
        }
        transaction.commit().await?;
        Ok(deleted)
    }
}
