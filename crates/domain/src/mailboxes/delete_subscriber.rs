//! Deletes a subscriber permanently, immediately or when it can no longer be restored: its apps are deleted like single
//! ones, its audit trail is removed, and a worker ends its subscriptions.

use tokio_util::sync::CancellationToken;

use super::{Mailboxes, delete_app};
use crate::accounts::audit;
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::subscribers::{self, billing, deletion};
use mailgate_storage::{apps, audit_entries, email_counters};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{Owner, SubscriberId};
use mailgate_types::past::Past;

/// Audit entries removed per statement.
const BATCH: i64 = 1_000;

/// Subscribers found in one round.
const DUE: i64 = 10;

impl Mailboxes {
    /// Deletes a subscriber with its apps and its audit trail; `false` if there was none. Their log rows are removed
    /// later, and if the subscriber is billed, a worker ends its subscriptions. Returns before the grants are revoked.
    ///
    /// # Errors
    /// If the database fails; nothing is deleted then, or everything except a part of the trail.
    pub async fn delete_subscriber(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        self.delete_unless_restored(id, None, author).await
    }

    /// Deletes the subscribers that the operator has deleted and that can no longer be restored. Several replicas may
    /// do it at the same time.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn delete_due_subscribers(
        &self,
        stop: &CancellationToken,
    ) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock);
        let mut after = None;
        while !stop.is_cancelled() {
            let due = {
                let mut connection = self.pool.acquire().await?;
                deletion::due(&mut connection, past, after, DUE).await?
            };
            after = due.last().copied();
            if after.is_none() {
                break;
            }
            for id in due {
                let author = Author::operator(None);
                match self.delete_unless_restored(id, Some(past), author).await {
                    Ok(true) => {
                        tracing::info!(subscriber_id = %id, "a deleted subscriber was removed: its restore period is over");
                    }
                    Ok(false) => {}
                    // It must not block the others.
                    Err(error) => {
                        trouble!(error, error, subscriber_id = %id, "a deleted subscriber can't be removed; it is tried again");
                    }
                }
            }
        }
        Ok(())
    }

    /// With `due`, only one that has been deleted and could be restored until then.
    async fn delete_unless_restored(
        &self,
        id: SubscriberId,
        due: Option<Past>,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        // In the order of all locks (see `storage`): no app is created or deleted from here on.
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(false);
        };
        if let Some(past) = due {
            let due_at = deletion::due_at(&mut transaction, id).await?;
            if due_at.is_none_or(|due_at| due_at > past.moment()) {
                return Ok(false);
            }
        }
        let apps = apps::lock_all_of(&mut transaction, id).await?;
        let account = billing::find(&mut transaction, id).await?;
        let mut grants = Vec::new();
        for (app, name) in &apps {
            let ended = delete_app::begin(&mut transaction, *app, name.clone(), now);
            grants.extend(ended.await?);
        }
        billing_jobs::forget(&mut transaction, id).await?;
        if let Some(customer) = account.and_then(|account| account.customer_id) {
            let kind = JobKind::End;
            billing_jobs::enqueue(&mut transaction, id, kind, Some(&customer), now).await?;
        }
        email_counters::lock(&mut transaction).await?;
        email_counters::remove(&mut transaction, Owner::Subscriber(id)).await?;
        for (app, _) in &apps {
            delete_app::finish(&mut transaction, *app, now).await?;
        }
        subscribers::delete(&mut transaction, id).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberDeleted, id);
        transaction.commit_change(entry).await?;
        self.revoke(self.spent_grants(grants));
        let mut connection = self.pool.acquire().await?;
        while audit_entries::remove_of(&mut connection, id, BATCH).await? > 0 {}
        Ok(true)
    }
}
