//! Deletes a subscriber at the operator's word, so that it can be restored for a time: meanwhile none of its keys and
//! sessions opens anything, nothing is sent, and its mailboxes aren't read. What removes it is
//! [`delete_subscriber`](crate::mailboxes::Mailboxes::delete_subscriber).

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::{Accounts, audit};
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::subscribers::deletion;
use mailgate_storage::{apps, mailboxes, portal_links, portal_sessions};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;
use mailgate_types::past::kept_from;

/// How long a deleted subscriber can be restored.
const RESTORABLE: TimeDelta = TimeDelta::days(7);

/// How long its mailboxes aren't read, in hours: a year, since it may be removed later than at its time.
const UNREAD: i32 = 365 * 24;

/// What a deletion has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is deleted, and can be restored until then.
    Until(DateTime<Utc>),
    /// It was deleted already, and can be restored until then.
    Already(DateTime<Utc>),
    /// There is no such subscriber.
    NotFound,
}

impl Accounts {
    /// Deletes a subscriber, to be removed in 7 days. Gateways that remember its apps learn of it
    /// before they take its next message.
    ///
    /// # Errors
    ///
    /// The database's; nothing is changed then.
    pub async fn delete_restorably(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<Deleted, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(Deleted::NotFound);
        };
        if let Some(due_at) = deletion::due_at(&mut transaction, id).await? {
            return Ok(Deleted::Already(due_at));
        }
        let due_at = kept_from(&self.clock) + RESTORABLE;
        deletion::mark(&mut transaction, id, Some(due_at)).await?;
        portal_sessions::delete_others(&mut transaction, id, None).await?;
        portal_links::delete_of(&mut transaction, id).await?;
        apps::lock_all_of(&mut transaction, id).await?;
        mailboxes::due::put_off(&mut transaction, id, UNREAD).await?;
        self.renewal_changed(&mut transaction, id, now).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberDeletionScheduled, id);
        let details = json!({ "restorable_until": iso8601(due_at) });
        transaction.commit_change(entry.with(details)).await?;
        Ok(Deleted::Until(due_at))
    }

    /// Restores a deleted subscriber that hasn't been removed yet. Its keys open again what they did; its portal
    /// sessions have ended. Returns whether it was deleted; `None` if there is no such subscriber.
    ///
    /// # Errors
    ///
    /// The database's; nothing is changed then.
    pub async fn restore(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<Option<bool>, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(None);
        };
        if deletion::due_at(&mut transaction, id).await?.is_none() {
            return Ok(Some(false));
        }
        deletion::mark(&mut transaction, id, None).await?;
        apps::lock_all_of(&mut transaction, id).await?;
        mailboxes::due::put_off(&mut transaction, id, -UNREAD).await?;
        self.renewal_changed(&mut transaction, id, now).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberRestored, id);
        transaction.commit_change(entry).await?;
        Ok(Some(true))
    }

    /// Has its subscription compared with what it is to be.
    async fn renewal_changed(
        &self,
        transaction: &mut audit::AuditedTransaction,
        id: SubscriberId,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        if self.beginning.is_billed {
            billing_jobs::enqueue(transaction, id, JobKind::Quantity, None, now).await?;
        }
        Ok(())
    }
}
