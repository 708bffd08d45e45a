//! Retries a waiting message now.

use chrono::{DateTime, Utc};

use super::{Queue, QueueError, Scope, ended, lock};
use crate::accounts::audit;
use crate::sending::accept::gate::admit;
use mailgate_storage::apps;
use mailgate_storage::spool::waiting;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::LogId;

impl Queue {
    /// Makes a waiting message due, whatever it waits for; the next free worker of any gateway tries it, within its
    /// mailbox's limits. Returns since when it is due.
    ///
    /// # Errors
    /// [`QueueError`]; the message is unchanged then.
    pub async fn retry(
        &self,
        scope: Scope,
        id: LogId,
        author: Author,
    ) -> Result<DateTime<Utc>, QueueError> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let Some(message) = lock(&mut transaction, scope, id).await? else {
            return Err(ended(&mut transaction, scope, id).await?.0);
        };
        if message.was_scheduled && !message.is_logged {
            return Err(QueueError::Scheduled);
        }
        let subscription = apps::subscription(&mut transaction, message.app).await?;
        let now = self.clock.now();
        admit(&subscription.unwrap_or_default(), now)?;
        let due = waiting::make_due(&mut transaction, id, now).await?;
        let entry = AuditEntry::of_app(AuditAction::MessageRetried, message.app).on(id);
        transaction.record(entry).await?;
        transaction.commit().await?;
        Ok(due.unwrap_or(now))
    }
}
