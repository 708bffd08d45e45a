//! Disconnects a mailbox, and emits the event.

use serde_json::json;

use super::Mailboxes;
use crate::accounts::audit::{self, AuditedTransaction};
use mailgate_storage::mailboxes::end::{self, Ended};
use mailgate_storage::webhook_messages;
use mailgate_storage::{apps, billing_jobs};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::{DisconnectReason, Emission, Event, MailboxEvent};
use mailgate_types::ids::{AppId, CredentialId};

impl Mailboxes {
    /// Disconnects an app's mailbox and revokes its grant where possible; `false` if the app has no such mailbox, or it
    /// was already disconnected. Returns before the grant is revoked.
    ///
    /// # Errors
    ///
    /// If the database fails; nothing has changed then.
    pub async fn disconnect(
        &self,
        app: AppId,
        id: CredentialId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let reason = DisconnectReason::Removed;
        let ended = self.end(&mut transaction, id, None, reason).await?;
        // If it belongs to another app, dropping the transaction restores it.
        let Some(ended) = ended.filter(|ended| ended.app == app) else {
            return Ok(false);
        };
        transaction.commit().await?;
        self.revoke(self.spent_grants(vec![ended]));
        Ok(true)
    }

    /// Disconnects a mailbox whose grant its provider no longer accepts, unless its token is of another generation;
    /// `false` if there is nothing to disconnect.
    ///
    /// # Errors
    ///
    /// If the database fails; nothing has changed then.
    pub async fn end_refused(
        &self,
        id: CredentialId,
        generation: Option<i64>,
        reason: DisconnectReason,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction =
            audit::begin(&self.pool, Author::provider(), self.clock.now()).await?;
        let ended = self.end(&mut transaction, id, generation, reason).await?;
        transaction.commit().await?;
        Ok(ended.is_some())
    }

    /// Disconnects a mailbox within the caller's transaction: records it, emits the event and decrements the billed
    /// quantity of its subscriber, if there is anything to disconnect; see [`end::end`].
    pub(super) async fn end(
        &self,
        transaction: &mut AuditedTransaction,
        id: CredentialId,
        generation: Option<i64>,
        reason: DisconnectReason,
    ) -> Result<Option<Ended>, sqlx::Error> {
        // Before the mailbox: an app's deletion locks the app first, and then its mailboxes.
        if !apps::keep_of(transaction, id).await? {
            return Ok(None);
        }
        let now = self.clock.now();
        let Some(ended) = end::end(transaction, id, generation, reason, now).await? else {
            return Ok(None);
        };
        let entry = AuditEntry::of_app(AuditAction::UserDisconnected, ended.app)
            .on(id)
            .with(json!({
                "email": ended.email, "plugin": ended.plugin.as_str(), "reason": reason.as_str(),
            }));
        transaction.record(entry).await?;
        let mailbox = MailboxEvent {
            credential_id: id,
            email: ended.email.clone(),
            plugin: ended.plugin,
        };
        let event = Event::UserDisconnected { mailbox, reason };
        webhook_messages::emit(transaction, &[Emission::of(ended.app, event)], now).await?;
        billing_jobs::enqueue_quantity_of_app(transaction, ended.app, now).await?;
        Ok(Some(ended))
    }
}
