//! Subscribers: listed, changed, deleted.

use super::Accounts;
use super::audit::{Trail, commit_change};
use crate::storage::billing_jobs::{self, JobKind};
use crate::storage::subscribers::{self, Subscriber, SubscriberChange, billing};
use crate::storage::{
    audit_entries, deleted_apps, email_counters, portal_links, spool, transaction,
};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::ids::{Owner, SubscriberId};

/// Audit entries removed per statement.
const BATCH: i64 = 1_000;

impl Accounts {
    /// All subscribers, oldest first.
    pub async fn subscribers(&self) -> Result<Vec<Subscriber>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        subscribers::list(&mut connection).await
    }

    /// Changes a subscriber, at the payment provider too; `false` if it is gone.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is changed then.
    pub async fn change_subscriber(
        &self,
        id: SubscriberId,
        change: &SubscriberChange,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        let mut transaction = transaction::begin(&self.pool).await?;
        let Some(before) = subscribers::lock_fields(&mut transaction, id).await? else {
            return Ok(false);
        };
        let mut trail = Trail::new(author, now);
        if let Some(changed) = changed(&before, change) {
            subscribers::update(&mut transaction, id, change).await?;
            // Links that were mailed to the former address let nobody in any more.
            if (change.email.as_ref()).is_some_and(|email| before.email.as_ref() != Some(email)) {
                portal_links::delete_of(&mut transaction, id).await?;
            }
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

    /// Deletes a subscriber with its apps and its audit trail; `false` if there was none. Their log rows are removed
    /// later, and if the subscriber is billed, a worker ends its subscription.
    pub async fn delete_subscriber(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let account = billing::find(&mut transaction, id).await?;
        let now = self.clock.now();
        deleted_apps::insert_all_of(&mut transaction, id, now).await?;
        email_counters::lock(&mut transaction).await?;
        email_counters::remove(&mut transaction, Owner::Subscriber(id)).await?;
        if !subscribers::delete(&mut transaction, id).await? {
            return Ok(false);
        }
        // After the apps: whoever schedules a message keeps its app from being deleted meanwhile.
        spool::delete_waiting_of_deleted(&mut transaction, id).await?;
        // After the subscriber: a transaction that connects a mailbox holds the app's lock while it waits for these.
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
