//! Results that only a process ended by another still knows: a provider accepted a message, or a message was never sent
//! and never will be from here. Both are true no matter which process owns the message now, so both are written: the
//! first corrects the record of the message, the second returns it to the queue, from which a living process sends it.
//!
//! For this, the transaction inserts a gateway row of its own, which no other process ever sees, so that the usual
//! statements apply.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::sending::Sending;
use crate::sending::journal::ending::Ending;
use crate::sending::outcome::facts::Facts;
use crate::sending::queue::persist::{StoreError, WRITE_ATTEMPTS, pause_before};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::{journal, transaction};
use mailgate_storage::idempotency_keys::{self, NewKey};
use mailgate_storage::spool::{self, Deferral, Opening};
use mailgate_storage::webhook_messages::{self, NewMessage};
use mailgate_storage::{email_attempts, email_logs, gateways};
use mailgate_types::ids::GatewayId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::message::Message;
use mailgate_types::past::kept_from;

/// A message that was never sent.
pub(in crate::sending) struct LeftOver<'a> {
    pub(in crate::sending) facts: &'a Facts,
    pub(in crate::sending) opening: &'a Opening,
    pub(in crate::sending) key: Option<NewKey>,
    pub(in crate::sending) message: &'a Message,
}

/// Why a message can't be handed over.
#[derive(Debug, thiserror::Error)]
pub(in crate::sending) enum HandOverError {
    /// Its key now stands for another message.
    #[error("its key was reused for another message")]
    KeyOfAnother,
    /// No trace of the message is left: its app was deleted.
    #[error("its app was deleted")]
    Gone,
    /// It can't be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database did not answer the commit, so its outcome is unknown.
    #[error("its commit is unconfirmed: {0}")]
    Unknown(#[source] sqlx::Error),
}

impl From<sqlx::Error> for HandOverError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(StoreError::Database(error))
    }
}

impl Sending {
    /// Records that a message was sent, overriding its earlier record.
    pub(in crate::sending) async fn record_sent_anyway(
        &self,
        ending: &Ending,
    ) -> Result<(), sqlx::Error> {
        let (mut closing, now) = (ending.closing.clone(), self.clock.now());
        let mut transaction = transaction::begin(&self.pool).await?;
        let gateway = begin(&mut transaction, now).await?;
        let is_stored = spool::hand_to(&mut transaction, gateway, closing.id).await?;
        if let Some(attempt) = &mut closing.attempt {
            let end = email_attempts::number_of_end(&mut transaction, closing.id).await?;
            attempt.number = end.unwrap_or(attempt.number);
        }
        if is_stored {
            let events = [NewMessage::of(&ending.emission, now)];
            let written =
                journal::write(&mut transaction, gateway, &[], &[&closing], &events, now).await?;
            written.map_err(|_| sqlx::Error::RowNotFound)?;
        } else if email_logs::correct(&mut transaction, &closing).await? {
            let emissions = [ending.emission.clone()];
            webhook_messages::emit(&mut transaction, &emissions, now).await?;
            tracing::info!(log_id = %closing.id, "a message that counted as failed was sent: the provider had accepted it");
        } else {
            return Ok(());
        }
        if let Some((key, answer)) = &ending.answer {
            let (id, app) = (closing.id, ending.emission.app);
            idempotency_keys::answer_of(&mut transaction, id, app, key, answer).await?;
        }
        gateways::remove(&mut transaction, gateway).await?;
        transaction.commit().await
    }

    /// Returns a message that was never sent to the queue, overriding its earlier record. Database errors are retried;
    /// a retry also finds out whether a commit whose response was lost has succeeded.
    pub(in crate::sending) async fn hand_over(
        &self,
        left: &LeftOver<'_>,
        deferral: &Deferral,
        answer: Option<(String, Value)>,
    ) -> Result<(), HandOverError> {
        let mut attempt = 1;
        let mut may_be_stored = false;
        loop {
            let error = match self.try_hand_over(left, deferral, answer.clone()).await {
                Ok(()) => return Ok(()),
                Err(HandOverError::Unknown(error)) => {
                    may_be_stored = true;
                    error
                }
                Err(HandOverError::Store(StoreError::Database(error))) => error,
                // This was found after the commit with the lost response, which therefore can't have succeeded.
                Err(error) => return Err(error),
            };
            if attempt >= WRITE_ATTEMPTS {
                return Err(if may_be_stored {
                    HandOverError::Unknown(error)
                } else {
                    error.into()
                });
            }
            trouble!(warn, error, log_id = %deferral.id, "a message can't be handed over; trying again");
            tokio::time::sleep(pause_before(attempt)).await;
            attempt += 1;
        }
    }

    async fn try_hand_over(
        &self,
        left: &LeftOver<'_>,
        deferral: &Deferral,
        answer: Option<(String, Value)>,
    ) -> Result<(), HandOverError> {
        let now = self.clock.now();
        let mut transaction = transaction::begin(&self.pool).await?;
        let gateway = begin(&mut transaction, now).await?;
        if spool::has_chunks(&mut transaction, deferral.id).await? {
            // This process stored it before it was ended, but never got the answer.
            return Ok(());
        }
        if !spool::hand_to(&mut transaction, gateway, deferral.id).await? {
            if !email_logs::reopen(&mut transaction, deferral.id).await? {
                // Stored before, and has ended since.
                let logged = email_logs::ending(&mut transaction, deferral.id).await?;
                return logged.map(drop).ok_or(HandOverError::Gone);
            }
            // Without a version to check: the message was accepted, whatever has changed since.
            let opening = Opening {
                version: None,
                ..left.opening.clone()
            };
            let opened = journal::open(&mut transaction, gateway, &[&opening]).await?;
            opened.map_err(|_| StoreError::Ended)?;
        }
        // After the statements above, so that a process that ends the message meanwhile has already freed its key.
        if let Some(key) = &left.key {
            // The key is free again if the process that took the message over found that it was not sent.
            idempotency_keys::claim(&mut transaction, &[key], kept_from(&self.clock)).await?;
            let known = idempotency_keys::find(&mut transaction, key.app, &key.key).await?;
            if known.is_none_or(|known| known.log != key.log) {
                return Err(HandOverError::KeyOfAnother);
            }
        }
        let (facts, message) = (left.facts, Some(left.message));
        self.store_in(&mut transaction, gateway, facts, deferral, message, answer)
            .await?;
        gateways::remove(&mut transaction, gateway).await?;
        transaction.commit().await.map_err(HandOverError::Unknown)?;
        tracing::info!(log_id = %deferral.id, status = LogStatus::FailedTemp.as_str(), "a message that had not been sent was handed over");
        Ok(())
    }
}

async fn begin(
    transaction: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<GatewayId, sqlx::Error> {
    let gateway = GatewayId::at(now);
    gateways::begin(transaction, gateway).await?;
    Ok(gateway)
}
