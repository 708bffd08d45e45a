//! Cancels a message: it is not sent, or not tried again.

use super::{Queue, QueueError, Scope, ended, lock};
use crate::accounts::audit;
use crate::sending::outcome::facts::Facts;
use mailgate_storage::database::journal;
use mailgate_storage::gateways;
use mailgate_storage::spool;
use mailgate_storage::spool::waiting::Locked;
use mailgate_storage::webhook_messages::NewMessage;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::{GatewayId, LogId};
use mailgate_types::log_status::CANCELLED;

impl Queue {
    /// Cancels a waiting message that no process has claimed: it ends as `failed_perm`, with its event, in one
    /// transaction. A message that was cancelled before is unchanged.
    ///
    /// # Errors
    /// [`QueueError`]; the message is unchanged then, unless the database doesn't respond to the commit: then call this
    /// again to find out.
    pub async fn cancel(&self, scope: Scope, id: LogId, author: Author) -> Result<(), QueueError> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let Some(message) = lock(&mut transaction, scope, id).await? else {
            return match ended(&mut transaction, scope, id).await? {
                (QueueError::Failed, Some(error)) if error == CANCELLED => Ok(()),
                (error, _) => Err(error),
            };
        };
        if message.outcome_unknown {
            return Err(QueueError::OutcomeUnknown);
        }
        let now = self.clock.now();
        // It is claimed by a gateway row that no other process ever sees, so that the usual statement ends it.
        let gateway = GatewayId::at(now);
        gateways::begin(&mut transaction, gateway).await?;
        spool::hand_to(&mut transaction, gateway, id).await?;
        let ending = facts(&message).failed(CANCELLED.to_owned(), None);
        let events = [NewMessage::of(&ending.emission, now)];
        let closings = [&ending.closing];
        let written = journal::write(&mut transaction, gateway, &[], &closings, &events, now);
        (written.await?).map_err(|_| sqlx::Error::RowNotFound)?;
        gateways::remove(&mut transaction, gateway).await?;
        let entry = AuditEntry::of_app(AuditAction::MessageCanceled, message.app).on(id);
        transaction.record(entry).await?;
        Ok(transaction.commit().await?)
    }
}

fn facts(message: &Locked) -> Facts {
    Facts {
        id: message.id,
        app: message.app,
        credential: message.credential,
        plugin: message.plugin,
        from_address: message.from_address.clone(),
        to_address: message.to_address.clone(),
        subject: message.subject.clone(),
        message_id: message.message_id.clone(),
        metadata: message.metadata.clone(),
    }
}
