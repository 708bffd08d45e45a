//! One attempt: token → submit → verdict. If the verdict is unknown, the Sent folder is searched.

use std::time::{Duration, Instant};

use crate::mailboxes::{Mailbox, TokenError};
use crate::sending::Sending;
use crate::sending::outcome::verify::Presence;
use mailgate_providers::mail::transport::{Recipients, SendPermit};
use mailgate_providers::mail::verdict::{Failure, Verdict};
use mailgate_storage::database::outage::trouble;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

/// Delays before the checks of the Sent folder for a message whose outcome is unknown: providers have been seen to
/// answer 504 and still deliver a little later.
const LOOKS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// A message, and the mailbox it is sent from.
#[derive(Debug, Clone, Copy)]
pub(in crate::sending) struct Outgoing<'a> {
    /// Its id in the log.
    pub(in crate::sending) id: LogId,
    pub(in crate::sending) mailbox: &'a Mailbox,
    pub(in crate::sending) recipients: &'a Recipients,
    pub(in crate::sending) message: &'a Message,
    /// Its Message-ID header, with the angle brackets.
    pub(in crate::sending) message_id: Option<&'a str>,
    /// Checked before the last part of the message is transmitted.
    pub(in crate::sending) permit: &'a dyn SendPermit,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(in crate::sending) enum Attempted {
    /// The provider's verdict.
    Known(Verdict),
    /// The message had been transmitted when the connection broke; a later search of the Sent folder will show
    /// whether it arrived.
    Unconfirmed(Failure),
}

impl Sending {
    /// Submits a message once. If the provider rejects the access token, it is refreshed and the submission repeated
    /// once: nothing has been sent before.
    pub(in crate::sending) async fn attempt(&self, submission: Outgoing<'_>) -> Attempted {
        let verdict = self.submit_once(submission).await;
        if let Verdict::Sent { .. } = verdict {
            self.mailboxes.note_sent(submission.mailbox);
        }
        if let Verdict::Temporary {
            retry_after: Some(wait),
            ..
        } = verdict
        {
            self.park(submission.mailbox, wait).await;
        }
        if let Verdict::SenderRefused(_) = verdict {
            self.mailboxes.note_sender_refused(submission.mailbox).await;
        }
        let Verdict::Unknown(failure) = verdict else {
            return Attempted::Known(verdict);
        };
        let mut presence = Presence::Unknowable;
        for pause in LOOKS {
            tokio::time::sleep(pause).await;
            presence = self
                .look_up(submission.mailbox, submission.id, submission.message_id)
                .await;
            match presence {
                Presence::Sent => {
                    tracing::info!(credential_id = %submission.mailbox.id, "a message whose connection broke was found among the sent ones");
                    self.mailboxes.note_sent(submission.mailbox);
                    return Attempted::Known(Verdict::sent());
                }
                Presence::Unknowable => break,
                Presence::ConfirmedMissing | Presence::NotFound | Presence::NotNow => {}
            }
        }
        match presence {
            Presence::Unknowable | Presence::NotFound => {
                Attempted::Known(Verdict::Unknown(failure))
            }
            _ => Attempted::Unconfirmed(failure),
        }
    }

    async fn submit_once(&self, submission: Outgoing<'_>) -> Verdict {
        let Outgoing {
            mailbox,
            recipients,
            message,
            permit,
            ..
        } = submission;
        let Some(provider) = self.providers.get(mailbox.plugin) else {
            return Verdict::temporary(Failure::own(format!("{} is not set up", mailbox.plugin)));
        };
        let mut refused = None;
        loop {
            let account = match self.mailboxes.access(mailbox, refused).await {
                Ok(account) => account,
                Err(error) => return no_token(&error),
            };
            let started = Instant::now();
            let verdict = provider
                .transport
                .submit(&account, recipients, message, permit)
                .await;
            metrics::histogram!("mailgate_provider_seconds", "plugin" => mailbox.plugin.as_str())
                .record(started.elapsed());
            match (verdict, refused) {
                (Verdict::TokenRefused(_), None) => {
                    self.mailboxes.forget(mailbox);
                    refused = Some(account.generation);
                }
                (Verdict::TokenRefused(failure), Some(_)) => return Verdict::Permanent(failure),
                (verdict, _) => return verdict,
            }
        }
    }
}

fn no_token(error: &TokenError) -> Verdict {
    match error {
        TokenError::Disconnected => Verdict::Permanent(Failure::own(
            "5.7.8 The mailbox is no longer connected: its user must connect it again",
        )),
        TokenError::Unavailable(text) => Verdict::temporary(Failure::own(text.clone())),
        // Database and sealing errors are the operator's concern, not the caller's.
        error => {
            trouble!(error, error, "no token for a mailbox");
            Verdict::temporary(Failure::own(
                "the gateway can't access the mailbox at the moment",
            ))
        }
    }
}
