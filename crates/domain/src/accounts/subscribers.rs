//! Subscribers: listed, changed.

pub(crate) mod create;
pub(crate) mod deletion;
pub(crate) mod limits;
pub(crate) mod suspend;

use super::Accounts;
use super::audit;
use super::email_changes::{EmailChangeError, asked, withdraw};
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::subscribers::{self, Subscriber, SubscriberChange};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, changed};
use mailgate_types::ids::SubscriberId;

impl Accounts {
    /// All subscribers, oldest first.
    pub async fn subscribers(&self) -> Result<Vec<Subscriber>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        subscribers::list(&mut connection).await
    }

    /// Changes a subscriber, at the payment provider too; returns its new fields, `None` if it was deleted. A new
    /// address must be confirmed if a link can be mailed; setting the current one cancels such a change.
    ///
    /// # Errors
    ///
    /// Nothing is changed then.
    pub async fn change_subscriber(
        &self,
        id: SubscriberId,
        change: &SubscriberChange,
        author: Author,
    ) -> Result<Option<SubscriberChange>, EmailChangeError> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        let Some(before) = subscribers::lock_fields(&mut transaction, id).await? else {
            return Ok(None);
        };
        if change.email.is_some() && change.email == before.email {
            withdraw(&mut transaction, id, now).await?;
        } else if let Some((email, former)) = change.email.clone().zip(before.email.clone()) {
            let asked = asked(id, former, email, now);
            self.ask_for_email(&mut transaction, &asked, author).await?;
        }
        let labelled = SubscriberChange {
            label: change.label.clone(),
            email: None,
        };
        if let Some(changed) = changed(&before, &labelled) {
            subscribers::update(&mut transaction, id, &labelled).await?;
            if self.beginning.is_billed {
                let kind = JobKind::Provision;
                billing_jobs::enqueue(&mut transaction, id, kind, None, now).await?;
            }
            let entry = AuditEntry::of_subscriber(AuditAction::SubscriberChanged, id);
            transaction.record(entry.with(changed)).await?;
        }
        let after = subscribers::lock_fields(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(after)
    }
}
