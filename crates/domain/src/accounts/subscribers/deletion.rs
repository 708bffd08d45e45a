//! Deletes a subscriber for the operator, so that it can be restored for a time: meanwhile its keys and sessions are
//! invalid, nothing is sent, and its mailboxes aren't read.
//! [`delete_subscriber`](crate::mailboxes::Mailboxes::delete_subscriber) removes it for good.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::accounts::{Accounts, audit};
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

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is deleted, and can be restored until this time.
    Until(DateTime<Utc>),
    /// It was already deleted, and can be restored until this time.
    Already(DateTime<Utc>),
    /// There is no such subscriber.
    NotFound,
}

impl Accounts {
    /// Deletes a subscriber, to be removed in 7 days. Gateways that cache its apps notice before they accept its next
    /// message.
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

    /// Restores a deleted subscriber that hasn't been removed yet. Its keys are valid again; its portal sessions have
    /// ended. Returns whether it was deleted; `None` if there is no such subscriber.
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

    /// Schedules a comparison of its subscription with the expected state.
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
