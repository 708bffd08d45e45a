//! The path of a message from its opening to its end, or to the queue.

pub(crate) mod attempt;
pub(crate) mod pace;
pub(crate) mod permit;

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::accept::idempotency::{IdempotencyKey, stored_answer};
use super::accept::prepared::Prepared;
use super::journal::{NotWritten, Opened};
use super::outcome::after_attempt::AfterAttempt;
use super::outcome::facts::{Facts, report};
use super::outcome::{Outcome, Receipt, Taken};
use super::queue::persist::StoreError;
use super::queue::persist::close::Closed;
use super::recovery::late_results::{HandOverError, LeftOver};
use super::{SendError, Sending};
use crate::accounts::SendingApp;
use crate::mailboxes::Chosen;
use attempt::{Attempted, Outgoing};
use mailgate_providers::mail::verdict::{Failure, Verdict};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::spool::{Attempt, Deferral, Opening};
use mailgate_types::ids::SubscriberId;
use mailgate_types::message::Message;
use pace::{Asker, Pace};

/// A message at its first attempt.
struct First<'a> {
    subscriber: SubscriberId,
    facts: Facts,
    receipt: Receipt,
    message: &'a Message,
    key: Option<&'a IdempotencyKey>,
    opening: Arc<Opening>,
}

impl Sending {
    /// Opens a message and submits it for the first time; nothing is sent if it can't be opened. With the hash of the
    /// send key that it was accepted under, it is stored until its scheduled time instead.
    pub(super) async fn take(
        &self,
        app: &SendingApp,
        chosen: &Chosen,
        prepared: Prepared,
        key: Option<&IdempotencyKey>,
        send_key_hash: Option<&[u8]>,
    ) -> Result<Taken, SendError> {
        let (app, subscriber) = (app.id, app.subscriber);
        let mailbox = &chosen.mailbox;
        let Prepared {
            id,
            at,
            message,
            recipients,
            message_id,
            summary,
        } = prepared;
        let facts = Facts {
            id,
            app,
            credential: mailbox.id,
            plugin: mailbox.plugin,
            from_address: summary.from_address.clone(),
            to_address: summary.to_address.clone(),
            subject: summary.subject.clone(),
            message_id: message_id.clone(),
            metadata: summary.metadata.clone(),
        };
        let opening = Opening {
            id,
            app,
            credential: mailbox.id,
            from_address: summary.from_address,
            to_address: summary.to_address,
            cc_addresses: summary.cc_addresses,
            bcc_addresses: summary.bcc_addresses,
            subject: summary.subject,
            plugin: mailbox.plugin,
            message_id: message_id.clone(),
            size_bytes: i64::try_from(message.size()).unwrap_or(i64::MAX),
            has_attachments: summary.has_attachments,
            metadata: summary.metadata,
            door: summary.door,
            recipients: recipients.addresses.clone(),
            smtputf8: recipients.smtputf8,
            opened_at: at,
            key: key.map(|key| key.key.clone()),
            version: chosen.version,
        };
        let _hold = self.held.hold(id);
        if let Some(hash) = send_key_hash {
            return self.schedule(&opening, &message, key, hash).await;
        }
        let opening = Arc::new(opening);
        let new_key = key.map(|key| key.of_message(app, id));
        match self.journal.open(Arc::clone(&opening), new_key).await {
            Ok(Opened::Here) => {}
            Ok(Opened::Twin) => return Ok(Taken::Twin),
            Ok(Opened::Stale) => return Ok(Taken::Stale),
            Err(NotWritten::Trouble { .. }) => {
                // Whether or not it was opened: without its bytes nobody can send it.
                self.withdraw(id, app, key);
                return Err(SendError::NotTaken);
            }
            Err(NotWritten::Ended) => return Err(SendError::NotTaken),
        }
        let first = First {
            subscriber,
            receipt: Receipt {
                id,
                from: facts.from_address.clone(),
                plugin: mailbox.plugin,
                message_id: message_id.clone(),
            },
            facts,
            message: &message,
            key,
            opening,
        };
        let outcome = match self.pace(mailbox, Asker::Submission).await {
            Pace::Go => {
                let submission = Outgoing {
                    id,
                    mailbox,
                    recipients: &recipients,
                    message: &message,
                    message_id: message_id.as_deref(),
                    permit: &self.lease,
                };
                self.try_first(first, submission).await
            }
            Pace::Later { at, why } => {
                let failure = Failure::own(why);
                self.queue(first, failure, at, false, None).await
            }
        };
        outcome.map(Taken::Here)
    }

    async fn try_first(
        &self,
        first: First<'_>,
        submission: Outgoing<'_>,
    ) -> Result<Outcome, SendError> {
        let (started, at) = (std::time::Instant::now(), self.clock.now());
        let attempted = self.attempt(submission).await;
        let took = started.elapsed();
        let attempt = Attempt {
            number: 1,
            at,
            milliseconds: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
        };
        let may_have_arrived = matches!(attempted, Attempted::Known(Verdict::Unknown(_)));
        let next = self.after_attempt(attempted, 1, at);
        report(&next, &first.facts, took);
        match next {
            AfterAttempt::Sent { message_id } => {
                let outcome = Outcome::Sent {
                    receipt: Receipt {
                        message_id: message_id.clone().or(first.receipt.message_id.clone()),
                        ..first.receipt.clone()
                    },
                };
                let mut ending = first.facts.sent(message_id, Some(attempt));
                ending.answer = first.answer(&outcome);
                // The provider's reply is final, whichever process owns the message now.
                self.close(ending).await;
                self.file_sent(
                    Some(first.subscriber),
                    submission.mailbox,
                    submission.id,
                    submission.message,
                );
                Ok(outcome)
            }
            AfterAttempt::Failed(failure) => {
                let mut ending = first.facts.failed(failure.to_string(), Some(attempt));
                let outcome = Outcome::Rejected {
                    receipt: first.receipt.clone(),
                    failure,
                    may_have_arrived,
                };
                ending.answer = first.answer(&outcome);
                match self.close(ending).await {
                    // The process that took it over may find that it has arrived.
                    Closed::Ended if may_have_arrived => Err(SendError::Unknown),
                    _ => Ok(outcome),
                }
            }
            AfterAttempt::Again {
                failure,
                next_attempt_at,
                outcome_unknown,
            } => {
                self.queue(
                    first,
                    failure,
                    next_attempt_at,
                    outcome_unknown,
                    Some(attempt),
                )
                .await
            }
        }
    }

    /// Stores a message for a later attempt.
    async fn queue(
        &self,
        first: First<'_>,
        failure: Failure,
        next_attempt_at: DateTime<Utc>,
        outcome_unknown: bool,
        attempt: Option<Attempt>,
    ) -> Result<Outcome, SendError> {
        let id = first.facts.id;
        let deferral = Deferral {
            id,
            attempts: attempt.map_or(0, |attempt| attempt.number),
            error_message: failure.to_string(),
            next_attempt_at,
            left_by: outcome_unknown.then(|| self.clock.now()),
            awaits_subscription: false,
            awaits_pace: attempt.is_none(),
            attempt,
            due_at: None,
        };
        let outcome = Outcome::Queued {
            receipt: first.receipt.clone(),
            failure,
            retry_count: deferral.attempts,
            next_retry_at: next_attempt_at,
        };
        let answer = first.answer(&outcome);
        let stored = self
            .defer_first(&first.facts, &deferral, Some(first.message), answer.clone())
            .await;
        let error = match stored {
            Ok(()) => return Ok(outcome),
            Err(StoreError::Ended) if outcome_unknown => return Err(SendError::Unknown),
            Err(StoreError::Ended) => {
                let left = LeftOver {
                    facts: &first.facts,
                    opening: &first.opening,
                    key: first.key.map(|key| key.of_message(first.facts.app, id)),
                    message: first.message,
                };
                return match self.hand_over(&left, &deferral, answer).await {
                    Ok(()) => Ok(outcome),
                    Err(error @ HandOverError::Unknown(_)) => {
                        tracing::error!(log_id = %id, %error, "a message that was not sent may have been handed over");
                        Err(SendError::Unknown)
                    }
                    Err(error) => {
                        tracing::error!(log_id = %id, %error, "a message that was not sent can't be handed over: its sender will retry");
                        Err(SendError::NotTaken)
                    }
                };
            }
            // It may have arrived, so this process keeps it until its outcome is known.
            Err(error) if outcome_unknown => {
                tracing::error!(log_id = %id, %error, "a message that may have arrived could not be stored: it is looked up later");
                return Err(SendError::Unknown);
            }
            Err(error) => error,
        };
        let app = first.facts.app;
        if let StoreError::Unanswered(error) = error {
            trouble!(error, error, log_id = %id, "a message that failed may have been stored: it is withdrawn");
            return Err(self.surely_withdraw(id, app, first.key).await);
        }
        self.withdraw(id, app, first.key);
        if let StoreError::QuotaFull = error {
            metrics::counter!("mailgate_waiting_refused_total").increment(1);
            return Err(SendError::QuotaFull);
        }
        trouble!(error, error, log_id = %id, "a message that failed could not be stored: its sender will retry");
        Err(SendError::NotTaken)
    }
}

impl First<'_> {
    /// The answer to store under the caller's key.
    fn answer(&self, outcome: &Outcome) -> Option<(String, serde_json::Value)> {
        self.key
            .map(|key| (key.key.clone(), stored_answer::of(outcome)))
    }
}
