//! What a process knows alone that another one has ended: that a provider has taken a message, or that a
//! message has never left and never will from here. Both are facts whoever has the message in hand by now, so
//! both are written all the same: the first corrects what was said of the message, the second gives it into
//! the queue, from which the living send it.
//!
//! The transaction begins a process of its own for that, which nobody else ever sees, so that the statements
//! are the usual ones.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use super::Sending;
use super::ending::Ending;
use super::facts::Facts;
use super::persist::{StoreError, WRITE_ATTEMPTS, pause_before};
use crate::storage::idempotency_keys::{self, NewKey};
use crate::storage::outage::trouble;
use crate::storage::spool::{self, Deferral, Opening};
use crate::storage::webhook_messages::{self, NewMessage};
use crate::storage::{email_logs, gateways, journal};
use mailgate_types::ids::GatewayId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::message::Message;

/// A message that has never left.
pub(super) struct LeftOver<'a> {
    pub(super) facts: &'a Facts,
    pub(super) opening: &'a Opening,
    pub(super) key: Option<NewKey>,
    pub(super) message: &'a Message,
}

/// A message can't be handed over.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandOverError {
    /// Its key stands for another message by now.
    #[error("its sender has asked again under its key")]
    KeyOfAnother,
    /// Nobody knows of it any more: its app is gone.
    #[error("it is gone")]
    Gone,
    /// It can't be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database did not answer the commit, and nobody knows what came of it.
    #[error("whether it is stored can't be known: {0}")]
    Unknown(#[source] sqlx::Error),
}

impl From<sqlx::Error> for HandOverError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(StoreError::Database(error))
    }
}

impl Sending {
    /// Says that a message was sent, whatever was said of it before.
    pub(super) async fn stand_by(&self, ending: &Ending) -> Result<(), sqlx::Error> {
        let (closing, now) = (&ending.closing, self.clock.now());
        let mut transaction = self.pool.begin().await?;
        let gateway = begin(&mut transaction, now).await?;
        if spool::hand_to(&mut transaction, gateway, closing.id).await? {
            let events = [NewMessage::of(&ending.emission, now)];
            let written =
                journal::write(&mut transaction, gateway, &[], &[closing], &events, now).await?;
            written.map_err(|_| sqlx::Error::RowNotFound)?;
        } else if email_logs::correct(&mut transaction, closing).await? {
            let emissions = [ending.emission.clone()];
            webhook_messages::emit(&mut transaction, &emissions, now).await?;
            tracing::info!(log_id = %closing.id, "a message that counted as failed was sent: the provider had said so");
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

    /// Gives a message into the queue that has never left, whatever was said of it before. A database that
    /// stumbles is asked again, and tells then whether a commit whose answer was lost has succeeded.
    pub(super) async fn hand_over(
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
                // What this says was found out after the commit, which can't have succeeded then.
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
        let mut transaction = self.pool.begin().await?;
        let gateway = begin(&mut transaction, now).await?;
        if spool::has_chunks(&mut transaction, deferral.id).await? {
            // It was stored before this process was ended, and never heard of it.
            return Ok(());
        }
        if !spool::hand_to(&mut transaction, gateway, deferral.id).await? {
            if !email_logs::reopen(&mut transaction, deferral.id).await? {
                // Stored before, and ended since.
                let logged = email_logs::ending(&mut transaction, deferral.id).await?;
                return logged.map(drop).ok_or(HandOverError::Gone);
            }
            // Whatever has changed since: it was taken.
            let opening = Opening {
                version: None,
                ..left.opening.clone()
            };
            let opened = journal::open(&mut transaction, gateway, &[&opening]).await?;
            opened.map_err(|_| StoreError::Ended)?;
        }
        // Behind the above, so that whoever ends the message meanwhile has freed its key before.
        if let Some(key) = &left.key {
            // Free again, where whoever took the message over has found that it was not sent.
            idempotency_keys::claim(&mut transaction, &[key], now).await?;
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
        tracing::info!(log_id = %deferral.id, status = LogStatus::FailedTemp.as_str(), "a message that had not left was handed over");
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
