//! Stores a scheduled message in one transaction, with its bytes, the answer for its idempotency key, and its share of
//! the quota. From then on it is a stored message like those that wait for another attempt.

use sqlx::PgConnection;

use super::persist::StoreError;
use crate::sending::accept::idempotency::{IdempotencyKey, stored_answer};
use crate::sending::accept::quota::Quota;
use crate::sending::journal::minimal;
use crate::sending::outcome::{Outcome, Receipt, Taken};
use crate::sending::{SendError, Sending};
use mailgate_storage::database::error_class::is_refusal;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::idempotency_keys;
use mailgate_storage::spool::{self, Opening};
use mailgate_types::message::Message;
use mailgate_types::past::kept_from;

/// A message to be stored.
struct Scheduled<'a> {
    opening: &'a Opening,
    message: &'a Message,
    key: Option<&'a IdempotencyKey>,
    send_key_hash: &'a [u8],
}

/// The result of storing it.
enum Stored {
    Here,
    Twin,
    Stale,
}

impl Sending {
    /// Stores a message until its `opened_at`. If that fails, its sender will try again, so a commit that succeeded
    /// without a response is undone.
    pub(in crate::sending) async fn schedule(
        &self,
        opening: &Opening,
        message: &Message,
        key: Option<&IdempotencyKey>,
        send_key_hash: &[u8],
    ) -> Result<Taken, SendError> {
        let (id, send_at) = (opening.id, opening.opened_at);
        let outcome = Outcome::Scheduled {
            receipt: Receipt {
                id,
                from: opening.from_address.clone(),
                plugin: opening.plugin,
                message_id: opening.message_id.clone(),
            },
            send_at,
        };
        let scheduled = Scheduled {
            opening,
            message,
            key,
            send_key_hash,
        };
        let stored = match self.try_schedule(&scheduled, &outcome).await {
            Err(StoreError::Database(error)) if is_refusal(&error) => {
                tracing::warn!(log_id = %id, %error, "a message was rejected by the database; it is stored without the sender's texts");
                let opening = minimal::opening(opening);
                let scheduled = Scheduled {
                    opening: &opening,
                    ..scheduled
                };
                self.try_schedule(&scheduled, &outcome).await
            }
            stored => stored,
        };
        match stored {
            Ok(Stored::Here) => {
                tracing::info!(
                    log_id = %id,
                    app_id = %opening.app,
                    credential_id = %opening.credential,
                    plugin = %opening.plugin,
                    send_at = %send_at,
                    "a message was scheduled"
                );
                Ok(Taken::Here(outcome))
            }
            Ok(Stored::Twin) => Ok(Taken::Twin),
            Ok(Stored::Stale) => Ok(Taken::Stale),
            Err(StoreError::QuotaFull) => {
                metrics::counter!("mailgate_waiting_refused_total").increment(1);
                Err(SendError::QuotaFull)
            }
            Err(StoreError::Ended) => Err(SendError::NotTaken),
            Err(StoreError::Database(error)) => {
                trouble!(error, error, log_id = %id, "a scheduled message could not be stored: its sender will retry");
                Err(SendError::NotTaken)
            }
            Err(StoreError::Unanswered(error)) => {
                trouble!(error, error, log_id = %id, "a scheduled message may have been stored: it is withdrawn");
                Err(self.surely_withdraw(id, opening.app, key).await)
            }
        }
    }

    async fn try_schedule(
        &self,
        scheduled: &Scheduled<'_>,
        outcome: &Outcome,
    ) -> Result<Stored, StoreError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let Scheduled { opening, key, .. } = scheduled;
        spool::lock_id(&mut transaction, opening.id).await?;
        if let Some(key) = key {
            let known = idempotency_keys::find(&mut transaction, opening.app, &key.key).await?;
            if known.is_some() {
                return Ok(Stored::Twin);
            }
        }
        if !store(&mut transaction, self.quota, scheduled).await? {
            return Ok(Stored::Stale);
        }
        // Late, so that the subscriber's other messages wait for little more than the commit.
        if !self
            .quota
            .surely_holds(&mut transaction, opening.app)
            .await?
        {
            return Err(StoreError::QuotaFull);
        }
        // Last: the journal, which writes for everyone, waits for the holder of a key.
        if let Some(key) = key {
            let new = key.of_message(opening.app, opening.id);
            let claimed =
                idempotency_keys::claim(&mut transaction, &[&new], kept_from(&self.clock)).await?;
            if claimed.is_empty() {
                return Ok(Stored::Twin);
            }
            let answer = stored_answer::of(outcome);
            let answers = [(opening.app, key.key.as_str(), &answer)];
            idempotency_keys::answer(&mut transaction, &answers).await?;
        }
        transaction.commit().await.map_err(StoreError::of_commit)?;
        Ok(Stored::Here)
    }
}

/// `false` if the app has changed.
async fn store(
    connection: &mut PgConnection,
    quota: Quota,
    scheduled: &Scheduled<'_>,
) -> Result<bool, StoreError> {
    let opening = scheduled.opening;
    if !spool::schedule(connection, opening, scheduled.send_key_hash).await? {
        return Ok(false);
    }
    // Before the bytes, which cost more than the check.
    if !quota.may_hold(connection, opening.app).await? {
        return Err(StoreError::QuotaFull);
    }
    for (position, chunk) in (0..).zip(scheduled.message.chunks()) {
        spool::add_chunk(connection, opening.id, position, chunk).await?;
    }
    Ok(true)
}
