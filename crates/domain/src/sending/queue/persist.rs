//! Writes the outcome of a message, riding out database failures.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::sending::accept::idempotency::IdempotencyKey;
use crate::sending::journal::NotWritten;
use crate::sending::journal::ending::Ending;
use crate::sending::journal::minimal;
use crate::sending::journal::missing_day;
use crate::sending::outcome::facts::Facts;
use crate::sending::recovery::cut_off_errors;
use crate::sending::{SendError, Sending};
use mailgate_storage::database::error_class::{is_of_missing_day, is_refusal};
use mailgate_storage::database::outage::{Outage, trouble};
use mailgate_storage::database::transaction;
use mailgate_storage::email_counters;
use mailgate_storage::email_logs;
use mailgate_storage::gateways;
use mailgate_storage::idempotency_keys;
use mailgate_storage::spool::{self, Deferral};
use mailgate_storage::webhook_messages;
use mailgate_types::ids::{AppId, GatewayId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::message::Message;

/// How long a sender waits for the withdrawal of its message.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(10);

/// The error text of a message that another process took over and ended, although its sender got a temporary error.
const NOT_TAKEN: &str =
    "Nothing was sent: the gateway lost its database, and told the sender to try again";

/// Attempts to write an outcome while the caller waits.
pub(in crate::sending) const WRITE_ATTEMPTS: u32 = 5;

/// Why a message is not stored.
#[derive(Debug, thiserror::Error)]
pub(in crate::sending) enum StoreError {
    /// Its subscriber's queue quota is full.
    #[error("the subscriber's queue quota is full")]
    QuotaFull,
    /// Another process has ended this one and taken the message over.
    #[error("this process was ended by another one")]
    Ended,
    /// The database's error; nothing is stored.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The database's error on a commit that may have succeeded.
    #[error("the response to a commit was lost: {0}")]
    Unanswered(#[source] sqlx::Error),
}

impl StoreError {
    /// The meaning of a failed commit.
    pub(in crate::sending) fn of_commit(error: sqlx::Error) -> Self {
        // A backend that is terminated while it waits for a standby reports so, and has committed; one that panics may
        // have.
        let severity = (error.as_database_error())
            .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
            .map(PgDatabaseError::severity);
        let is_rolled_back = severity == Some(PgSeverity::Error) && !error.is_outage();
        if is_rolled_back {
            Self::Database(error)
        } else {
            Self::Unanswered(error)
        }
    }
}

/// The result of withdrawing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Withdrawal {
    /// It is nowhere.
    Done,
    /// It was sent, or has failed; or its sender has repeated the request under its key, and was answered that it is
    /// queued.
    Kept,
    /// Another process has taken it over, and may requeue it.
    NotYet,
}

/// The answer to the sender of a withdrawn message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Nothing was sent, certainly.
    NotTaken,
    /// None yet: it depends on the withdrawal.
    Nothing,
}

impl Outage for StoreError {
    fn is_outage(&self) -> bool {
        matches!(self, Self::Database(error) | Self::Unanswered(error) if error.is_outage())
    }
}

/// The outcome of writing the end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Closed {
    /// It is written, or will be.
    Here,
    /// It is not written: another process has ended this one, and finishes the message.
    Ended,
}

impl Sending {
    /// Writes the end of a message. The provider's reply is final whatever happens in the database, so a failure isn't
    /// reported to the caller, who would only send again; the write is retried until it succeeds or the process ends.
    pub(in crate::sending) async fn close(&self, ending: Ending) -> Closed {
        let ending = Arc::new(ending);
        let error = match self.try_close(&ending, WRITE_ATTEMPTS).await {
            Ok(closed) => return closed,
            Err(error) => error,
        };
        trouble!(
            error,
            error,
            log_id = %ending.closing.id,
            status = ending.closing.status.as_str(),
            "a message's outcome could not be recorded yet; it will be retried"
        );
        let sending = self.clone();
        let hold = self.held.hold(ending.closing.id);
        let task = async move {
            let _hold = hold;
            let written = tokio::select! {
                written = sending.try_close(&ending, u32::MAX) => written,
                () = sending.stop.cancelled() => sending.try_close(&ending, 1).await,
            };
            if written.is_err() {
                tracing::error!(
                    log_id = %ending.closing.id,
                    status = ending.closing.status.as_str(),
                    "a message's outcome was not recorded; its spool row stays open"
                );
            }
        };
        self.tracker.spawn(task.in_current_span());
        Closed::Here
    }

    /// That a provider accepted a message is a fact, written even if this process was ended.
    async fn try_close(&self, ending: &Arc<Ending>, attempts: u32) -> Result<Closed, NotWritten> {
        let mut attempt = 1;
        loop {
            let error = match self.journal.close(Arc::clone(ending)).await {
                Ok(()) => return Ok(Closed::Here),
                Err(NotWritten::Ended) if ending.closing.status != LogStatus::Sent => {
                    return Ok(Closed::Ended);
                }
                Err(NotWritten::Ended) => match self.record_sent_anyway(ending).await {
                    Ok(()) => return Ok(Closed::Here),
                    Err(error) => {
                        trouble!(error, error, log_id = %ending.closing.id, "a sent message can't be recorded as sent yet");
                        let is_outage = error.is_outage();
                        NotWritten::Trouble { is_outage }
                    }
                },
                Err(error) => error,
            };
            if attempt >= attempts {
                return Err(error);
            }
            tokio::time::sleep(pause_before(attempt)).await;
            attempt += 1;
        }
    }

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

    /// Withdraws a message that may have been stored although its sender got a temporary error: a commit whose response
    /// was lost may have succeeded. The message is held meanwhile, so that this process doesn't try it. It stays if its
    /// sender has repeated the request under its key and was answered that it is queued. If another process has taken
    /// it over and recorded that it may have arrived, this one corrects the record.
    pub(in crate::sending) fn withdraw(&self, id: LogId, app: AppId, key: Option<&IdempotencyKey>) {
        drop(self.withdraw_until(id, app, key, Told::NotTaken, CancellationToken::new()));
    }

    /// As [`Sending::withdraw`], with no further try once `until` is cancelled. The task's result is whether the message is
    /// surely nowhere.
    fn withdraw_until(
        &self,
        id: LogId,
        app: AppId,
        key: Option<&IdempotencyKey>,
        told: Told,
        until: CancellationToken,
    ) -> JoinHandle<bool> {
        let sending = self.clone();
        let hold = self.held.hold(id);
        let key = key.map(|key| key.key.clone());
        let task = async move {
            let _hold = hold;
            for attempt in 1..u32::MAX {
                if until.is_cancelled() {
                    return false;
                }
                // A commit may be delayed, and the connections are shared.
                let place = sending.withdrawals.acquire().await;
                let withdrawn = sending.try_withdraw(id, app, key.as_deref(), told).await;
                drop(place);
                match withdrawn {
                    Ok(Withdrawal::Done) => return true,
                    Ok(Withdrawal::Kept) => {
                        tracing::info!(log_id = %id, "a message is not withdrawn: it has ended, or its sender repeated the request and was answered that it is queued");
                        return false;
                    }
                    Ok(Withdrawal::NotYet) => {
                        tracing::warn!(log_id = %id, "a message can't be withdrawn yet: another process is sending it");
                    }
                    Err(error) => {
                        trouble!(warn, error, log_id = %id, "a message can't be withdrawn yet");
                    }
                }
                if sending.stop.is_cancelled() {
                    tracing::error!(log_id = %id, "a message was not withdrawn, and may be sent although its sender retries it");
                    return false;
                }
                // On shutdown, try once more immediately.
                tokio::select! {
                    () = tokio::time::sleep(pause_before(attempt)) => {}
                    () = sending.stop.cancelled() => {}
                    () = until.cancelled() => {}
                }
            }
            false
        };
        self.tracker.spawn(task.in_current_span())
    }

    /// As [`Sending::withdraw`], but waits a little: returns the answer for the sender of a message whose commit may
    /// have succeeded. After the answer that the outcome is unknown, a stored message is sent, unless its withdrawal is
    /// being committed, since the sender may not repeat it.
    pub(in crate::sending) async fn surely_withdraw(
        &self,
        id: LogId,
        app: AppId,
        key: Option<&IdempotencyKey>,
    ) -> SendError {
        let until = CancellationToken::new();
        let withdrawing = self.withdraw_until(id, app, key, Told::Nothing, until.clone());
        let _end = until.drop_guard();
        match timeout(WITHDRAWN_WITHIN, withdrawing).await {
            Ok(Ok(true)) => SendError::NotTaken,
            Ok(_) | Err(_) => SendError::Unknown,
        }
    }

    async fn try_withdraw(
        &self,
        id: LogId,
        app: AppId,
        key: Option<&str>,
        told: Told,
    ) -> Result<Withdrawal, sqlx::Error> {
        let mut transaction = transaction::begin(&self.pool).await?;
        self.journal.end_left(&mut transaction).await?;
        spool::lock_id(&mut transaction, id).await?;
        let Some(deferred) = spool::withdraw(&mut transaction, self.lease.id(), id).await? else {
            // In this order: a message that leaves the spool meanwhile is in the log.
            let is_there = spool::is_there(&mut transaction, id).await?;
            let logged = email_logs::ending(&mut transaction, id).await?;
            return match logged {
                _ if is_there => Ok(Withdrawal::NotYet),
                Some(_) if told == Told::NotTaken => {
                    let reasons = cut_off_errors();
                    if !email_logs::replace_error(&mut transaction, id, &reasons, NOT_TAKEN).await?
                    {
                        return Ok(Withdrawal::Kept);
                    }
                    if let Some(key) = key {
                        idempotency_keys::withdraw(&mut transaction, app, key, id).await?;
                    }
                    transaction.commit().await?;
                    Ok(Withdrawal::Done)
                }
                Some(_) => Ok(Withdrawal::Kept),
                None => Ok(Withdrawal::Done),
            };
        };
        if let Some(key) = key
            && !idempotency_keys::withdraw(&mut transaction, app, key, id).await?
        {
            return Ok(Withdrawal::Kept);
        }
        if !deferred.is_first {
            webhook_messages::withdraw(&mut transaction, app, id).await?;
            email_counters::count_deferred(&mut transaction, &deferred, -1).await?;
        }
        transaction.commit().await?;
        Ok(Withdrawal::Done)
    }
}

/// A tenth of a second, doubled with each attempt, up to half a minute.
pub(in crate::sending) fn pause_before(attempt: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    (Duration::from_millis(100) * doubled.min(300)).min(Duration::from_secs(30))
}
