//! Disconnects a mailbox, and emits the event.

use serde_json::json;
use sqlx::PgConnection;

use super::Mailboxes;
use crate::accounts::audit::Trail;
use crate::storage::mailboxes::end::{self, Ended};
use crate::storage::webhook_messages;
use crate::storage::{apps, billing_jobs, transaction};
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
        let mut transaction = transaction::begin(&self.pool).await?;
        let mut trail = Trail::new(author, self.clock.now());
        let reason = DisconnectReason::Removed;
        let ended = self
            .end(&mut transaction, &mut trail, id, None, reason)
            .await?;
        // If it belongs to another app, dropping the transaction restores it.
        let Some(ended) = ended.filter(|ended| ended.app == app) else {
            return Ok(false);
        };
        trail.commit(transaction).await?;
        self.revoke(self.spent_grants(vec![ended]));
        Ok(true)
    }

    /// Disconnects a mailbox within the caller's transaction: records it, emits the event and decrements the billed
    /// quantity of its subscriber, if there is anything to disconnect; see [`end::end`].
    pub(super) async fn end(
        &self,
        connection: &mut PgConnection,
        trail: &mut Trail,
        id: CredentialId,
        generation: Option<i64>,
        reason: DisconnectReason,
    ) -> Result<Option<Ended>, sqlx::Error> {
        // Before the mailbox: whoever deletes the app has it locked, and then deletes its mailboxes.
        if !apps::keep_of(connection, id).await? {
            return Ok(None);
        }
        let now = self.clock.now();
        let Some(ended) = end::end(connection, id, generation, reason, now).await? else {
            return Ok(None);
        };
        let entry = AuditEntry::of_app(AuditAction::UserDisconnected, ended.app)
            .on(id)
            .with(json!({
                "email": ended.email, "plugin": ended.plugin.as_str(), "reason": reason.as_str(),
            }));
        trail.record(connection, entry).await?;
        let mailbox = MailboxEvent {
            credential_id: id,
            email: ended.email.clone(),
            plugin: ended.plugin,
        };
        let event = Event::UserDisconnected { mailbox, reason };
        webhook_messages::emit(connection, &[Emission::of(ended.app, event)], now).await?;
        billing_jobs::enqueue_quantity_of_app(connection, ended.app, now).await?;
        Ok(Some(ended))
    }
}
