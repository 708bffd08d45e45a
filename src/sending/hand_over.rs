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
use super::facts::Facts;
use super::journal::Ending;
use super::write::StoreError;
use crate::storage::idempotency_keys::{self, NewKey};
use crate::storage::spool::{self, Deferral, Opening};
use crate::storage::webhook_messages::{self, NewMessage};
use crate::storage::{email_logs, gateways, journal};
use crate::types::ids::GatewayId;
use crate::types::log_status::LogStatus;
use crate::types::message::Message;

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

    /// Gives a message into the queue that has never left, whatever was said of it before.
    pub(super) async fn hand_over(
        &self,
        left: LeftOver<'_>,
        deferral: &Deferral,
        answer: Option<(String, Value)>,
    ) -> Result<(), HandOverError> {
        let now = self.clock.now();
        let mut transaction = self.pool.begin().await?;
        let gateway = begin(&mut transaction, now).await?;
        if let Some(key) = &left.key {
            // Free again, where whoever took the message over has found that it was not sent.
            idempotency_keys::claim(&mut transaction, &[key], now).await?;
            let known = idempotency_keys::find(&mut transaction, key.app, &key.key).await?;
            if known.is_none_or(|known| known.log != key.log) {
                return Err(HandOverError::KeyOfAnother);
            }
        }
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
            let opened = journal::open(&mut transaction, gateway, &[left.opening]).await?;
            opened.map_err(|_| StoreError::Ended)?;
        }
        let (facts, message) = (left.facts, Some(left.message));
        self.store_in(&mut transaction, gateway, facts, deferral, message, answer)
            .await?;
        gateways::remove(&mut transaction, gateway).await?;
        transaction.commit().await?;
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
