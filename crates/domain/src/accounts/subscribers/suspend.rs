//! Suspends a subscriber for the operator: none of its mail is sent, whatever it has paid, until it is resumed.
//! `sending::accept::gate` enforces it, for waiting messages too.

use serde_json::json;
use uuid::Uuid;

use crate::accounts::{Accounts, audit};
use mailgate_storage::subscribers::deletion;
use mailgate_storage::{billing_notices, subscribers};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::notice::Notice;

/// Longest reason, in characters.
pub const MOST_REASON: usize = 250;

impl Accounts {
    /// Suspends a subscriber for a reason that it can read, or resumes it with `None`. If it is already suspended, the
    /// reason is replaced. Gateways that cache its apps notice before they accept its next message. Returns whether
    /// anything has changed; `None` if there is no such subscriber.
    ///
    /// # Errors
    ///
    /// The database's; nothing is changed then.
    pub async fn suspend(
        &self,
        id: SubscriberId,
        reason: Option<&str>,
        author: Author,
    ) -> Result<Option<bool>, sqlx::Error> {
        let now = self.clock.now();
        // Requests of its credentials have ended: no app is created for it after this.
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(None);
        };
        let before = subscribers::suspension(&mut transaction, id).await?;
        let before = before.map(|suspension| suspension.reason);
        if before.as_deref() == reason {
            return Ok(Some(false));
        }
        subscribers::set_suspension(&mut transaction, id, reason, now).await?;
        let (action, notice) = match reason {
            Some(reason) => (
                AuditAction::SubscriberSuspended,
                Notice::AccountSuspended {
                    at: now,
                    reason: reason.to_owned(),
                },
            ),
            None => (
                AuditAction::SubscriberResumed,
                Notice::AccountResumed { at: now },
            ),
        };
        // A deleted subscriber couldn't act on it.
        if deletion::due_at(&mut transaction, id).await?.is_none() {
            let event = format!("{action} {}", Uuid::new_v4());
            billing_notices::insert(&mut transaction, id, &event, &notice, now).await?;
        }
        let details = json!({ "reason": { "from": before, "to": reason } });
        let entry = AuditEntry::of_subscriber(action, id).with(details);
        transaction.commit_change(entry).await?;
        Ok(Some(true))
    }
}
