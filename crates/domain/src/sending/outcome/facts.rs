//! The facts about a message for the log, the webhook events and the operator.

use std::time::Duration;

use super::after_attempt::AfterAttempt;
use crate::sending::journal::ending::Ending;
use mailgate_storage::spool::{Attempt, Claimed, Closing, Deferral};
use mailgate_types::event::{EmailEvent, Emission, Event};
use mailgate_types::ids::{AppId, CredentialId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::metadata::Metadata;
use mailgate_types::moment::iso8601;
use mailgate_types::plugin::Plugin;

/// The facts about a message that logs and events show.
#[derive(Debug, Clone)]
pub(in crate::sending) struct Facts {
    pub(in crate::sending) id: LogId,
    pub(in crate::sending) app: AppId,
    pub(in crate::sending) credential: CredentialId,
    pub(in crate::sending) plugin: Plugin,
    /// The mailbox's address.
    pub(in crate::sending) from_address: String,
    /// As the log shows it.
    pub(in crate::sending) to_address: String,
    /// As the log shows it.
    pub(in crate::sending) subject: String,
    /// The Message-ID header.
    pub(in crate::sending) message_id: Option<String>,
    /// The app's metadata.
    pub(in crate::sending) metadata: Metadata,
}

impl Facts {
    /// The facts of a message claimed from the spool.
    pub(in crate::sending) fn of(claimed: &Claimed) -> Self {
        Self {
            id: claimed.id,
            app: claimed.app,
            credential: claimed.credential,
            plugin: claimed.plugin,
            from_address: claimed.from_address.clone(),
            to_address: claimed.to_address.clone(),
            subject: claimed.subject.clone(),
            message_id: claimed.message_id.clone(),
            metadata: claimed.metadata.clone(),
        }
    }

    /// The message was accepted by the provider, with this Message-ID if the provider assigned one.
    pub(in crate::sending) fn sent(
        &self,
        message_id: Option<String>,
        attempt: Option<Attempt>,
    ) -> Ending {
        Ending {
            emission: self.emission(Event::EmailSent {
                email: self.email(),
                message_id: message_id.clone().or(self.message_id.clone()),
            }),
            closing: Closing {
                id: self.id,
                status: LogStatus::Sent,
                error_message: None,
                message_id,
                attempt,
            },
            answer: None,
            freed_key: None,
        }
    }

    /// The message failed permanently.
    pub(in crate::sending) fn failed(&self, error: String, attempt: Option<Attempt>) -> Ending {
        Ending {
            emission: self.emission(Event::EmailFailedPerm {
                email: self.email(),
                error: error.clone(),
                r#final: true,
            }),
            closing: Closing {
                id: self.id,
                status: LogStatus::FailedPerm,
                error_message: Some(error),
                message_id: None,
                attempt,
            },
            answer: None,
            freed_key: None,
        }
    }

    /// The event of a failed attempt that will be retried.
    pub(in crate::sending) fn deferred(&self, deferral: &Deferral) -> Event {
        Event::EmailFailedTemp {
            email: self.email(),
            error: deferral.error_message.clone(),
            retry_count: deferral.attempts,
            next_retry_at: iso8601(deferral.next_attempt_at),
        }
    }

    /// An event about this message.
    pub(in crate::sending) fn emission(&self, event: Event) -> Emission {
        Emission {
            app: self.app,
            event,
            log: Some(self.id),
        }
    }

    fn email(&self) -> EmailEvent {
        EmailEvent {
            log_id: self.id,
            from_address: self.from_address.clone(),
            to_address: self.to_address.clone(),
            subject: self.subject.clone(),
            plugin: self.plugin,
            metadata: self.metadata.clone(),
        }
    }
}

/// Writes the one log line of an attempt.
pub(in crate::sending) fn report(next: &AfterAttempt, facts: &Facts, took: Duration) {
    let (outcome, error) = match next {
        AfterAttempt::Sent { .. } => (LogStatus::Sent, None),
        AfterAttempt::Failed(failure) => (LogStatus::FailedPerm, Some(failure.to_string())),
        AfterAttempt::Again { failure, .. } => (LogStatus::FailedTemp, Some(failure.to_string())),
    };
    metrics::counter!(
        "mailgate_messages_total",
        "outcome" => outcome.as_str(),
        "plugin" => facts.plugin.as_str()
    )
    .increment(1);
    tracing::info!(
        log_id = %facts.id,
        app_id = %facts.app,
        credential_id = %facts.credential,
        plugin = %facts.plugin,
        outcome = outcome.as_str(),
        error,
        milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "message"
    );
}
