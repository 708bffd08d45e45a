//! Determines whether a draft was sent: retries until the response is definite, or searches for the message if there is
//! none.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Graph;
use super::api::{CallError, GraphContent, GraphResponse, Patience, encoded};
use super::prepare::Prepared;
use super::verdict::is_unseen;
use crate::mail::own_headers::own_log_id;
use crate::mail::sent_copy::{Found, Sought};
use crate::mail::transport::{MailboxAccess, SendPermit};
use crate::mail::verdict::{Failure, Verdict};
use mailgate_types::message::Message;

/// Pauses before the checks for a message whose outcome is unclear.
const LOOKS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// Pauses before a draft that could not be found is sent again: a newly created draft isn't visible everywhere
/// immediately.
const UNSEEN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The state of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not sent yet.
    Draft,
    /// It has been sent.
    Sent,
}

impl Graph {
    /// Sends a draft; retries if it could not be found although it exists as a draft. `permit` is checked each time.
    pub(super) async fn send_draft(
        &self,
        account: &MailboxAccess,
        id: &str,
        patience: Patience,
        permit: &dyn SendPermit,
    ) -> Result<GraphResponse, CallError> {
        let address = self.api.address(&format!("/messages/{}/send", encoded(id)));
        let mut pauses = UNSEEN.into_iter();
        loop {
            permit.check().await.map_err(CallError::Withheld)?;
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

    /// The state of a draft by its id, if it can be determined: the id stays the same when it is sent.
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

    /// The state of a draft after a response that the mailbox or Graph is busy. If a gateway in front of Exchange sent
    /// it, Exchange may have continued, so a draft counts only if it remains one.
    pub(super) async fn state_when_busy(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        may_go_on: bool,
    ) -> Option<State> {
        let patience = self.tracing();
        let mut state = None;
        for pause in LOOKS {
            sleep(pause).await;
            state = self.state(account, &prepared.id, patience).await;
            if state == Some(State::Sent) || state == Some(State::Draft) && !may_go_on {
                break;
            }
        }
        state
    }

    /// Checks whether a draft was sent whose send had no clear response.
    pub(super) async fn trace(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        message: &Message,
        failure: Failure,
    ) -> Verdict {
        let patience = self.tracing();
        let mut state = None;
        for pause in LOOKS {
            sleep(pause).await;
            state = self.state(account, &prepared.id, patience).await;
            if state == Some(State::Sent)
                || self.is_there(account, prepared, message, patience).await
            {
                tracing::info!(credential_id = %account.credential, "a message whose sending had no clear answer was found among the sent ones");
                return prepared.sent(message);
            }
        }
        // It may still be in transit, so this only changes the text shown to people.
        if state == Some(State::Draft) {
            return Verdict::Unknown(Failure::own(format!(
                "{failure}; it is still among the mailbox's drafts"
            )));
        }
        Verdict::Unknown(failure)
    }

    /// Whether the message is among the sent items, for a mailbox whose ids did change.
    async fn is_there(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        message: &Message,
        patience: Patience,
    ) -> bool {
        let (Some(message_id), Some(id)) = (&prepared.message_id, own_log_id(message)) else {
            return false;
        };
        let sought = Sought { id, message_id };
        let found = self.look_among_sent(account, sought, patience).await;
        found.map_or_else(
            |error| {
                tracing::warn!(credential_id = %account.credential, %error, "sent mail can't be read");
                false
            },
            |found| found == Found::Message,
        )
    }

    /// The timeouts for checks of a draft, from now on.
    fn tracing(&self) -> Patience {
        Patience {
            each: self.command,
            until: Instant::now() + LOOKS.iter().sum::<Duration>() + self.command,
        }
    }
}
