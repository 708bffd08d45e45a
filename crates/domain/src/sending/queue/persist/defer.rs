//! Stores a message for a later attempt.

use serde_json::Value;
use sqlx::PgConnection;

use super::{StoreError, WRITE_ATTEMPTS, pause_before};
use crate::sending::Sending;
use crate::sending::journal::{minimal, missing_day};
use crate::sending::outcome::facts::Facts;
use mailgate_storage::database::error_class::{is_of_missing_day, is_refusal};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::spool::{self, Deferral};
use mailgate_storage::{email_counters, email_logs, gateways, idempotency_keys, webhook_messages};
use mailgate_types::ids::GatewayId;
use mailgate_types::message::Message;

impl Sending {
    /// Stores a message for its next attempt, with its raw bytes the first time, and emits an event if an attempt
    /// failed: in one transaction. Database errors are retried. If a commit whose response was lost has succeeded,
    /// nothing is written a second time, since another process may own the message by then. A message after its first
    /// attempt must fit its app's quota, unless the provider may already have it.
    pub(in crate::sending) async fn defer_first(
        &self,
        facts: &Facts,
        deferral: &Deferral,
        message: Option<&Message>,
        answer: Option<(String, Value)>,
    ) -> Result<(), StoreError> {
        let mut attempt = 1;
        let mut may_be_stored = false;
        loop {
            let stored = self.try_store(facts, deferral, message, answer.clone());
            let error = match stored.await {
                Err(StoreError::Database(error)) => error,
                Err(StoreError::Unanswered(error)) => {
                    may_be_stored = true;
                    error
                }
                // Another process has taken over the message, which may have been stored.
                Err(StoreError::Ended) if may_be_stored => {
                    return Err(StoreError::Unanswered(sqlx::Error::WorkerCrashed));
                }
                stored => return stored,
            };
            if attempt >= WRITE_ATTEMPTS {
                return Err(if may_be_stored {
                    StoreError::Unanswered(error)
                } else {
                    error.into()
                });
            }
            trouble!(warn, error, log_id = %deferral.id, "a message can't be stored; trying again");
            tokio::time::sleep(pause_before(attempt)).await;
            attempt += 1;
        }
    }

    /// As [`Sending::defer_first`], for a message without a waiting caller. The write is retried until it succeeds or
    /// the process ends, since losing it would make the outcome unknown.
    pub(in crate::sending) async fn defer_again(&self, facts: &Facts, deferral: &Deferral) {
        for attempt in 1..u32::MAX {
            match self.try_store(facts, deferral, None, None).await {
                Ok(()) => return,
                Err(StoreError::Ended) => {
                    tracing::warn!(log_id = %deferral.id, "a stored message was taken over by another process, and was not requeued");
                    return;
                }
                Err(StoreError::Database(sqlx::Error::RowNotFound)) => {
                    tracing::info!(log_id = %deferral.id, "a stored message no longer exists, and was not requeued");
                    return;
                }
                Err(error) if self.stop.is_cancelled() => {
                    // The process that ends this one's row recovers it.
                    trouble!(error, error, log_id = %deferral.id, "a stored message was not requeued");
                    return;
                }
                Err(error) => {
                    trouble!(warn, error, log_id = %deferral.id, "a stored message can't be requeued yet");
                }
            }
            // On shutdown, try once more immediately.
            tokio::select! {
                () = tokio::time::sleep(pause_before(attempt)) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Stores a message in a transaction of its own; one that the database permanently rejects is stored without its
    /// untrusted text.
    async fn try_store(
        &self,
        facts: &Facts,
        deferral: &Deferral,
        message: Option<&Message>,
        answer: Option<(String, Value)>,
    ) -> Result<(), StoreError> {
        let gateway = self.lease.id();
        let store = async |answer| {
            let mut transaction = transaction::begin(&self.pool).await?;
            self.store_in(&mut transaction, gateway, facts, deferral, message, answer)
                .await?;
            transaction.commit().await.map_err(StoreError::of_commit)
        };
        let mut stored = store(answer.clone()).await;
        if let Err(StoreError::Database(error)) = &stored
            && is_of_missing_day(error)
            && missing_day::make(&self.pool, [deferral.id], self.clock.now()).await
        {
            stored = store(answer).await;
        }
        match stored {
            Err(StoreError::Database(error)) if is_refusal(&error) => {
                tracing::warn!(log_id = %deferral.id, %error, "a message was rejected by the database; it is stored without the sender's texts");
                let mut transaction = transaction::begin(&self.pool).await?;
                spool::strip(&mut transaction, &[deferral.id]).await?;
                let (facts, deferral) = (minimal::facts(facts), minimal::deferral(deferral));
                self.store_in(&mut transaction, gateway, &facts, &deferral, message, None)
                    .await?;
                transaction.commit().await.map_err(StoreError::of_commit)?;
                metrics::counter!("mailgate_journal_refused_total").increment(1);
                Ok(())
            }
            stored => stored,
        }
    }

    /// Stores a message within the caller's transaction, on behalf of the process that owns it.
    pub(in crate::sending) async fn store_in(
        &self,
        transaction: &mut PgConnection,
        gateway: GatewayId,
        facts: &Facts,
        deferral: &Deferral,
        message: Option<&Message>,
        answer: Option<(String, Value)>,
    ) -> Result<(), StoreError> {
        let Some(deferred) = spool::defer(transaction, gateway, deferral).await? else {
            if !gateways::is_living(transaction, gateway).await? {
                self.lease.end();
                return Err(StoreError::Ended);
            }
            // No other process has owned it, so this write has succeeded before.
            let logged = email_logs::ending(transaction, deferral.id).await?;
            return Ok(logged.map(drop).ok_or(sqlx::Error::RowNotFound)?);
        };
        let is_limited = message.is_some() && deferral.left_by.is_none();
        // Check before the write, which costs more than the check.
        if is_limited && !self.quota.may_hold(transaction, facts.app).await? {
            return Err(StoreError::QuotaFull);
        }
        if let Some(message) = message {
            for (position, chunk) in (0..).zip(message.chunks()) {
                spool::add_chunk(transaction, deferral.id, position, chunk).await?;
            }
        }
        if deferral.attempt.is_some() {
            let emission = facts.emission(facts.deferred(deferral));
            webhook_messages::emit(transaction, &[emission], self.clock.now()).await?;
        }
        if let Some((key, answer)) = answer {
            let answers = [(facts.app, key.as_str(), &answer)];
            idempotency_keys::answer(transaction, &answers).await?;
        }
        if deferred.is_first {
            email_counters::count_deferred(transaction, &deferred, 1).await?;
        }
        // Take the quota's lock last, so that the subscriber's other messages wait only for the commit.
        if is_limited && !(self.quota.surely_holds(transaction, facts.app)).await? {
            return Err(StoreError::QuotaFull);
        }
        Ok(())
    }
}
