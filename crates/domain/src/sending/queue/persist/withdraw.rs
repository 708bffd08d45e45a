//! Withdraws a message that may have been stored although its sender was refused.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::pause_before;
use crate::sending::accept::idempotency::IdempotencyKey;
use crate::sending::recovery::cut_off_errors;
use crate::sending::{SendError, Sending};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::{email_counters, email_logs, idempotency_keys, spool, webhook_messages};
use mailgate_types::ids::{AppId, LogId};

/// How long a sender waits for the withdrawal of its message.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(10);

/// The error text of a message that another process took over and ended, although its sender got a temporary error.
const NOT_TAKEN: &str =
    "Nothing was sent: the gateway lost its database, and told the sender to try again";

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

/// What the sender of a withdrawn message has been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// That nothing was sent.
    NotTaken,
    /// Nothing yet: it depends on the withdrawal.
    Pending,
}

impl Sending {
    /// Withdraws a message that may have been stored although its sender got a temporary error: a commit whose response
    /// was lost may have succeeded. The message is held meanwhile, so that this process doesn't try it. It stays if its
    /// sender has repeated the request under its key and was answered that it is queued. If another process has taken
    /// it over and recorded that it may have arrived, this one corrects the record.
    pub(in crate::sending) fn withdraw(&self, id: LogId, app: AppId, key: Option<&IdempotencyKey>) {
        drop(self.withdraw_until(id, app, key, Answer::NotTaken, CancellationToken::new()));
    }

    /// As [`Sending::withdraw`], with no further try once `until` is cancelled. The task's result is whether the
    /// message is surely nowhere.
    fn withdraw_until(
        &self,
        id: LogId,
        app: AppId,
        key: Option<&IdempotencyKey>,
        answer: Answer,
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
                let withdrawn = sending.try_withdraw(id, app, key.as_deref(), answer).await;
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
        let withdrawing = self.withdraw_until(id, app, key, Answer::Pending, until.clone());
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
        answer: Answer,
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
                Some(_) if answer == Answer::NotTaken => {
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
