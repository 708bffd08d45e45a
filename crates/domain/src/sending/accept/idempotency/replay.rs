//! Replays the answer to an earlier request with the same key.

use sqlx::PgConnection;

use super::{IdempotencyKey, stored_answer};
use crate::sending::outcome::{Answer, Outcome, Receipt};
use crate::sending::{SendError, Sending};
use mailgate_providers::mail::verdict::Failure;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::idempotency_keys::{self, Known};
use mailgate_storage::{email_logs, gateways};
use mailgate_types::ids::{AppId, CredentialId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

impl Sending {
    /// The outcome of the key's message; `None` if the key is free.
    pub(in crate::sending) async fn answer_to(
        &self,
        app: AppId,
        key: &IdempotencyKey,
    ) -> Result<Option<Answer>, SendError> {
        let unreadable = |error: sqlx::Error| {
            trouble!(error, error, app_id = %app, "an idempotency key can't be looked up");
            SendError::NotTaken
        };
        let mut connection = self.pool.acquire().await.map_err(unreadable)?;
        let known = key.known(&mut connection, app).await.map_err(unreadable)?;
        let Some((name, known)) = known else {
            return Ok(None);
        };
        if known.request_digest != key.request_digest {
            return Err(SendError::KeyOfAnother);
        }
        let outcome = match known {
            Known {
                answer: Some(answer),
                log,
                ..
            } => {
                let is_bound = idempotency_keys::is_bound(&answer);
                let outcome = stored_answer::read(answer).map_err(|_| {
                    tracing::error!(log_id = %log, "a stored answer can't be read");
                    SendError::Unknown
                });
                // The process that stored the message may have lost the commit's response, and be about to withdraw it.
                let is_waiting = matches!(
                    outcome,
                    Ok(Outcome::Queued { .. } | Outcome::Scheduled { .. })
                );
                let may_go = is_waiting && !is_bound;
                if may_go && !self.bind(&mut connection, app, name, log).await? {
                    return Ok(None);
                }
                outcome
            }
            Known { in_spool: true, .. } => Err(SendError::InFlight),
            // Its process died before it answered; the log has the outcome.
            Known { log, .. } => email_logs::ending(&mut connection, log)
                .await
                .map_err(unreadable)?
                .and_then(|ending| outcome_of(log, ending))
                .ok_or(SendError::InFlight),
        };
        outcome.map(|outcome| {
            Some(Answer {
                outcome,
                replayed: true,
            })
        })
    }

    /// Commits to an answer that is about to be given; `false` if its message was withdrawn. If that is unknown, the
    /// answer is only that the message is in progress, since it may still be sent.
    async fn bind(
        &self,
        connection: &mut PgConnection,
        app: AppId,
        name: &str,
        log: LogId,
    ) -> Result<bool, SendError> {
        let id = self.lease.id();
        let bound = async {
            Ok(
                if idempotency_keys::bind(connection, id, app, name, log).await? {
                    Some(true)
                } else if gateways::is_living(connection, id).await? {
                    Some(false)
                } else {
                    None
                },
            )
        };
        bound
            .await
            .unwrap_or_else(|error: sqlx::Error| {
                trouble!(error, error, app_id = %app, "an idempotency key can't be bound to its answer");
                None
            })
            .ok_or(SendError::InFlight)
    }

    /// The mailbox of a message; `None` if the message is no longer in the log.
    pub(in crate::sending) async fn mailbox_of(
        &self,
        log: LogId,
    ) -> Result<Option<CredentialId>, SendError> {
        let asked = async {
            let mut connection = self.pool.acquire().await?;
            email_logs::mailbox(&mut connection, log).await
        };
        asked.await.map_err(|error: sqlx::Error| {
            trouble!(error, error, log_id = %log, "the mailbox of a message can't be looked up");
            SendError::NotTaken
        })
    }
}

/// The outcome of a message, as the log has it.
fn outcome_of(log: LogId, ending: email_logs::LoggedOutcome) -> Option<Outcome> {
    let plugin: Plugin = ending.plugin.parse().ok()?;
    let receipt = Receipt {
        id: log,
        from: ending.from_address,
        plugin,
        message_id: ending.message_id,
    };
    if ending.status == LogStatus::Sent.as_str() {
        return Some(Outcome::Sent { receipt });
    }
    Some(Outcome::Rejected {
        receipt,
        failure: Failure::own(ending.error_message.unwrap_or_default()),
        may_have_arrived: true,
    })
}
