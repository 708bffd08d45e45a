//! The way of a message from open to close.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Sending;
use super::attempt::{Attempted, Submission};
use super::prepared::Prepared;
use crate::config::Unverifiable;
use crate::mailboxes::Mailbox;
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::storage::spool::{self, Closing, Deferral, Opening};
use crate::types::ids::{AppId, CredentialId, LogId};
use crate::types::log_status::LogStatus;
use crate::types::message::Message;
use crate::types::plugin::Plugin;

/// Attempts to write what became of a message while its caller waits.
const WRITE_ATTEMPTS: u32 = 5;

/// What a lease leaves for the journal, beyond the longest attempt.
const JOURNAL_MARGIN: Duration = Duration::from_mins(2);

/// What is told of a message whose outcome stays unknown.
pub(super) const UNVERIFIABLE: &str = "The connection broke after the message was out, and the \
    mailbox can't be looked into: it may have arrived, and was not sent again";

/// What became of a message that the gateway took.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The provider has it.
    Sent(Receipt),
    /// Stored; the gateway tries again, so the caller must not.
    Queued {
        /// Of the message.
        receipt: Receipt,
        /// Why not now.
        failure: Failure,
        /// Attempts that have failed so far.
        retry_count: i32,
        /// The next attempt.
        next_retry_at: DateTime<Utc>,
    },
    /// It will not be sent.
    Rejected {
        /// Of the message.
        receipt: Receipt,
        /// Why not.
        failure: Failure,
        /// It was out when the connection broke, and may have arrived.
        may_have_arrived: bool,
    },
}

/// What identifies a message from now on.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// In the log.
    pub id: LogId,
    /// The mailbox's address.
    pub from: String,
    /// The mailbox's provider.
    pub plugin: Plugin,
    /// The Message-ID header.
    pub message_id: Option<String>,
}

/// No outcome can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The gateway did not take the message: nothing was sent, and the caller may try again.
    #[error("The gateway can't take the message at the moment")]
    NotTaken,
    /// Something went wrong in the gateway, and the message may be out.
    #[error("Something went wrong in the gateway, and the message may have been sent")]
    Unknown,
}

/// How one attempt leaves its message.
#[derive(Debug)]
pub(super) enum Settled {
    Sent {
        /// The Message-ID that the provider gave it.
        message_id: Option<String>,
    },
    Failed(Failure),
    Again {
        failure: Failure,
        next_attempt_at: DateTime<Utc>,
        /// It may be at the provider already.
        outcome_unknown: bool,
    },
}

impl Sending {
    /// Sends a message from a mailbox. It goes on when the caller goes away.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub async fn send(
        &self,
        app: AppId,
        mailbox: Mailbox,
        prepared: Prepared,
    ) -> Result<Outcome, SendError> {
        let sending = self.clone();
        self.tracker
            .spawn(async move { sending.send_here(app, &mailbox, prepared).await })
            .await
            .unwrap_or(Err(SendError::Unknown))
    }

    async fn send_here(
        &self,
        app: AppId,
        mailbox: &Mailbox,
        prepared: Prepared,
    ) -> Result<Outcome, SendError> {
        let started = std::time::Instant::now();
        let Prepared {
            id,
            at,
            message,
            recipients,
            message_id,
            summary,
        } = prepared;
        let opening = Opening {
            id,
            app,
            credential: mailbox.id,
            from_address: mailbox.email.clone(),
            to_address: summary.to_address,
            cc_addresses: summary.cc_addresses,
            bcc_addresses: summary.bcc_addresses,
            subject: summary.subject,
            plugin: mailbox.plugin,
            message_id: message_id.clone(),
            size_bytes: i64::try_from(message.size()).unwrap_or(i64::MAX),
            has_attachments: summary.has_attachments,
            recipients: recipients.addresses.clone(),
            smtputf8: recipients.smtputf8,
            opened_at: at,
            lease_until: self.clock.now() + self.lease(),
        };
        self.journal
            .open(opening)
            .await
            .map_err(|_| SendError::NotTaken)?;
        let attempted = self
            .attempt(Submission {
                mailbox,
                recipients: &recipients,
                message: &message,
                message_id: message_id.as_deref(),
            })
            .await;
        let receipt = Receipt {
            id,
            from: mailbox.email.clone(),
            plugin: mailbox.plugin,
            message_id,
        };
        let may_have_arrived = matches!(attempted, Attempted::Told(Verdict::Unknown(_)));
        let settled = self.settle(attempted, 1);
        let names = Names {
            id,
            app,
            credential: mailbox.id,
            plugin: mailbox.plugin,
        };
        report(&settled, names, started.elapsed());
        match settled {
            Settled::Sent { message_id } => {
                self.close(Closing::sent(id, message_id.clone())).await;
                Ok(Outcome::Sent(Receipt {
                    message_id: message_id.or(receipt.message_id),
                    ..receipt
                }))
            }
            Settled::Failed(failure) => {
                self.close(Closing::failed(id, failure.to_string())).await;
                Ok(Outcome::Rejected {
                    receipt,
                    failure,
                    may_have_arrived,
                })
            }
            Settled::Again {
                failure,
                next_attempt_at,
                outcome_unknown,
            } => {
                let deferral = Deferral {
                    id,
                    attempts: 1,
                    error_message: failure.to_string(),
                    next_attempt_at,
                    outcome_unknown,
                };
                self.store(&deferral, Some(&message)).await.map_err(|error| {
                    tracing::error!(log_id = %id, %error, "a message that failed could not be stored: its sender is told to keep it");
                    SendError::NotTaken
                })?;
                Ok(Outcome::Queued {
                    receipt,
                    failure,
                    retry_count: 1,
                    next_retry_at: next_attempt_at,
                })
            }
        }
    }

    /// What an attempt means for a message whose `attempts`th it was.
    pub(super) fn settle(&self, attempted: Attempted, attempts: i32) -> Settled {
        let (failure, retry_after, outcome_unknown) = match attempted {
            Attempted::Told(Verdict::Sent { message_id }) => return Settled::Sent { message_id },
            Attempted::Told(Verdict::Permanent(failure) | Verdict::TokenRefused(failure)) => {
                return Settled::Failed(failure);
            }
            Attempted::Told(Verdict::Unknown(failure)) => match self.settings.unverifiable {
                Unverifiable::Fail => {
                    return Settled::Failed(Failure::own(format!("{UNVERIFIABLE} ({failure})")));
                }
                Unverifiable::Retry => (failure, None, false),
            },
            Attempted::Told(Verdict::Temporary {
                failure,
                retry_after,
            }) => (failure, retry_after, false),
            Attempted::Untold(failure) => (failure, None, true),
        };
        let scheduled = usize::try_from(attempts)
            .ok()
            .and_then(|attempts| self.settings.retry.get(attempts.checked_sub(1)?));
        match scheduled {
            None if outcome_unknown => {
                Settled::Failed(Failure::own(format!("{UNVERIFIABLE} ({failure})")))
            }
            None => Settled::Failed(failure),
            Some(wait) => {
                let wait = jittered(*wait).max(retry_after.unwrap_or_default());
                Settled::Again {
                    failure,
                    next_attempt_at: self.clock.now()
                        + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1)),
                    outcome_unknown,
                }
            }
        }
    }

    /// Writes the end of a message. What the provider answered stands whatever the database says, so
    /// the caller isn't told of a failure here, and would only send again; the entry is tried until it
    /// is written or the process ends.
    pub(super) async fn close(&self, closing: Closing) {
        if self.try_close(&closing, WRITE_ATTEMPTS).await {
            return;
        }
        tracing::error!(
            log_id = %closing.id,
            status = closing.status.as_str(),
            "the end of a message could not be written yet; it is tried again"
        );
        let sending = self.clone();
        self.tracker.spawn(async move {
            let written = tokio::select! {
                written = sending.try_close(&closing, u32::MAX) => written,
                () = sending.stop.cancelled() => sending.try_close(&closing, 1).await,
            };
            if !written {
                tracing::error!(
                    log_id = %closing.id,
                    status = closing.status.as_str(),
                    "the end of a message was not written; its spool row stays open"
                );
            }
        });
    }

    async fn try_close(&self, closing: &Closing, attempts: u32) -> bool {
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(pause_before(attempt)).await;
            }
            if self.journal.close(closing.clone()).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// How long a message may be worked on before its process counts as dead.
    pub(super) fn lease(&self) -> TimeDelta {
        let longest = self.providers.longest_attempt() + JOURNAL_MARGIN;
        TimeDelta::from_std(longest).unwrap_or(TimeDelta::hours(1))
    }

    /// Keeps a message for its next attempt, with its raw bytes the first time: in one transaction. A
    /// database that stumbles is asked again, since a commit whose answer was lost may have succeeded.
    pub(super) async fn store(
        &self,
        deferral: &Deferral,
        message: Option<&Message>,
    ) -> Result<(), sqlx::Error> {
        let mut attempt = 1;
        loop {
            match self.try_store(deferral, message).await {
                Err(error) if attempt < WRITE_ATTEMPTS => {
                    tracing::warn!(log_id = %deferral.id, %error, "a message can't be stored; trying again");
                    tokio::time::sleep(pause_before(attempt)).await;
                    attempt += 1;
                }
                stored => return stored,
            }
        }
    }

    async fn try_store(
        &self,
        deferral: &Deferral,
        message: Option<&Message>,
    ) -> Result<(), sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let kept = spool::defer(&mut transaction, deferral).await?;
        if !kept {
            return Err(sqlx::Error::RowNotFound);
        }
        if let Some(message) = message {
            for (position, chunk) in (0..).zip(message.chunks()) {
                spool::add_chunk(&mut transaction, deferral.id, position, chunk).await?;
            }
        }
        transaction.commit().await
    }
}

/// A tenth of a second, doubled with each attempt, half a minute at most.
fn pause_before(attempt: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    (Duration::from_millis(100) * doubled.min(300)).min(Duration::from_secs(30))
}

/// Up to a tenth longer, so that messages that failed together don't come back together.
fn jittered(wait: Duration) -> Duration {
    wait + wait.mul_f64(0.1 * rand::random::<f64>())
}

/// What the log names of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub(super) id: LogId,
    pub(super) app: AppId,
    pub(super) credential: CredentialId,
    pub(super) plugin: Plugin,
}

/// The one line that the log has of an attempt.
pub(super) fn report(settled: &Settled, names: Names, took: Duration) {
    let (outcome, error) = match settled {
        Settled::Sent { .. } => (LogStatus::Sent, None),
        Settled::Failed(failure) => (LogStatus::FailedPerm, Some(failure.to_string())),
        Settled::Again { failure, .. } => (LogStatus::FailedTemp, Some(failure.to_string())),
    };
    metrics::counter!(
        "mailgate_messages_total",
        "outcome" => outcome.as_str(),
        "plugin" => names.plugin.as_str()
    )
    .increment(1);
    tracing::info!(
        log_id = %names.id,
        app_id = %names.app,
        credential_id = %names.credential,
        plugin = %names.plugin,
        outcome = outcome.as_str(),
        error,
        milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "message"
    );
}
