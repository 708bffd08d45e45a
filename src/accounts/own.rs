//! A subscriber's own apps.

use super::Accounts;
use super::audit::{Trail, commit_change};
use crate::storage::apps::{self, App, Change};
use crate::storage::billing_jobs::{self, JobKind};
use crate::storage::subscribers::{self, Subscriber, SubscriberChange, billing};
use crate::storage::{audit_entries, deleted_apps, email_counters, mailboxes};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::ids::{AppId, Owner, SubscriberId};

/// Entries of the audit trail that are removed together.
const BATCH: i64 = 1_000;

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The app is gone.
    #[error("the app is gone")]
    Gone,
    /// Mailboxes would belong to nobody any more.
    #[error("{0} can't be turned off: connected mailboxes would be left without a user")]
    WouldOrphan(&'static str),
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// The subscriber's apps, the oldest first.
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
    pub async fn change_app(
        &self,
        app: AppId,
        change: &Change,
        author: Author,
    ) -> Result<(), ChangeError> {
        let mut transaction = self.pool.begin().await?;
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
        // What an app with several users begins with holds for one that becomes such an app.
        let becomes_multiuser = change.multiuser == Some(true) && before.multiuser == Some(false);
        let change = &Change {
            require_connect_session: change
                .require_connect_session
                .or(becomes_multiuser.then_some(true)),
            ..change.clone()
        };
        apps::update(&mut transaction, app, change).await?;
        let mut trail = Trail::new(author, self.clock.now());
        if let Some(changed) = changed(&before, change) {
            let entry = AuditEntry::of_app(AuditAction::AppChanged, app).with(changed);
            trail.record(&mut transaction, entry).await?;
        }
        Ok(trail.commit(transaction).await?)
    }

    /// Changes a subscriber, also as the payment provider knows it; `false` when it is gone.
    ///
    /// # Errors
    ///
    /// What the database said; nothing is changed then.
    pub async fn change_subscriber(
        &self,
        id: SubscriberId,
        change: &SubscriberChange,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        let mut transaction = self.pool.begin().await?;
        let Some(before) = subscribers::lock_fields(&mut transaction, id).await? else {
            return Ok(false);
        };
        let mut trail = Trail::new(author, now);
        if let Some(changed) = changed(&before, change) {
            subscribers::update(&mut transaction, id, change).await?;
            if self.beginning.is_billed {
                let kind = JobKind::Provision;
                billing_jobs::enqueue(&mut transaction, id, kind, None, now).await?;
            }
            let entry = AuditEntry::of_subscriber(AuditAction::SubscriberChanged, id);
            trail.record(&mut transaction, entry.with(changed)).await?;
        }
        trail.commit(transaction).await?;
        Ok(true)
    }

    /// All subscribers, the oldest first.
    pub async fn subscribers(&self) -> Result<Vec<Subscriber>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        subscribers::list(&mut connection).await
    }

    /// Removes a subscriber with its apps and its audit trail; `false` when there was none. What they left
    /// in the log is removed later, and where it is billed, a worker ends its subscription.
    pub async fn delete_subscriber(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let account = billing::find(&mut transaction, id).await?;
        let now = self.clock.now();
        deleted_apps::insert_all_of(&mut transaction, id, now).await?;
        email_counters::lock(&mut transaction).await?;
        email_counters::remove(&mut transaction, Owner::Subscriber(id)).await?;
        if !subscribers::delete(&mut transaction, id).await? {
            return Ok(false);
        }
        // After the subscriber: whoever connects a mailbox holds an app while it waits for these.
        billing_jobs::forget(&mut transaction, id).await?;
        if let Some(customer) = account.and_then(|account| account.customer_id) {
            let kind = JobKind::End;
            billing_jobs::enqueue(&mut transaction, id, kind, Some(&customer), now).await?;
        }
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberDeleted, id);
        commit_change(transaction, author, now, entry).await?;
        let mut connection = self.pool.acquire().await?;
        while audit_entries::remove_of(&mut connection, id, BATCH).await? > 0 {}
        Ok(true)
    }
}
