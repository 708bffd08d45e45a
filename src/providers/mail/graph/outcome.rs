//! Whether a draft was sent: it is sent until an answer says so, or looked for where none does.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::api::{CallError, GraphContent, GraphResponse, Patience, encoded};
use super::verdict::is_unseen;
use super::{Graph, Prepared};
use crate::providers::mail::transport::{Leave, MailboxAccess};
use crate::providers::mail::verdict::{Failure, Verdict};
use mailgate_types::message::Message;

/// Pauses before the looks for a message whose outcome is unclear.
const LOOKS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// Pauses before a draft is sent again that could not be found: a draft that has just been made isn't seen
/// everywhere at once.
const UNSEEN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What has become of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing as yet.
    Draft,
    /// It has been sent.
    Sent,
}

impl Graph {
    /// Sends a draft; again where it could not be found though it lies there as a draft. `leave` is asked each
    /// time.
    pub(super) async fn send_draft(
        &self,
        account: &MailboxAccess,
        id: &str,
        patience: Patience,
        leave: &dyn Leave,
    ) -> Result<GraphResponse, CallError> {
        let address = self.api.address(&format!("/messages/{}/send", encoded(id)));
        let mut pauses = UNSEEN.into_iter();
        loop {
            leave.ask().await.map_err(CallError::Withheld)?;
            let answer = self
                .api
                .call(
                    account,
                    Method::POST,
                    &address,
                    GraphContent::Nothing,
                    patience,
                )
                .await?;
            let pause = if is_unseen(&answer) {
                pauses.next()
            } else {
                None
            };
            let Some(pause) = pause else {
                return Ok(answer);
            };
            sleep(pause).await;
            if self.state(account, id, patience).await != Some(State::Draft) {
                return Ok(answer);
            }
        }
    }

    /// What lies under a draft's id, where that can be told: the id stays when it is sent.
    async fn state(&self, account: &MailboxAccess, id: &str, patience: Patience) -> Option<State> {
        let path = format!("/messages/{}?$select=isDraft", encoded(id));
        let looked = self.look(account, &self.api.address(&path), patience).await;
        let answer = looked.ok().filter(|answer| answer.status == 200)?;
        match answer.json()["isDraft"] {
            Value::Bool(true) => Some(State::Draft),
            Value::Bool(false) => Some(State::Sent),
            _ => None,
        }
    }

    /// Looks what has become of a draft whose sending had no clear answer.
    pub(super) async fn trace(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        message: &Message,
        failure: Failure,
    ) -> Verdict {
        let patience = Patience {
            each: self.command,
            until: Instant::now() + self.tracing(),
        };
        let mut state = None;
        for pause in LOOKS {
            sleep(pause).await;
            state = self.state(account, &prepared.id, patience).await;
            if state == Some(State::Sent) || self.is_there(account, prepared, patience).await {
                tracing::info!(credential_id = %account.credential, "a message whose sending had no clear answer was found among the sent ones");
                return prepared.sent(message);
            }
        }
        // It may be on its way even then, so that nothing follows from it but what people are told.
        if state == Some(State::Draft) {
            return Verdict::Unknown(Failure::own(format!(
                "{failure}; it is still among the mailbox's drafts"
            )));
        }
        Verdict::Unknown(failure)
    }

    /// Whether sent mail has the draft's Message-ID, for a mailbox whose ids did change.
    async fn is_there(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        patience: Patience,
    ) -> bool {
        let Some(id) = &prepared.message_id else {
            return false;
        };
        let found = self.is_among_sent(account, id, patience).await;
        found.unwrap_or_else(|error| {
            tracing::warn!(credential_id = %account.credential, %error, "sent mail can't be read");
            false
        })
    }

    /// How long [`Graph::trace`] may take.
    fn tracing(&self) -> Duration {
        LOOKS.iter().sum::<Duration>() + self.command
    }
}
