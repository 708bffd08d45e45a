//! Submits a message as a draft.

use tokio::time::Instant;

use super::api::{GraphContent, GraphResponse, Patience};
use super::base64_message::{base64, in_base64};
use super::outcome::State;
use super::prepare::Prepared;
use super::verdict::{Stage, of_answer, of_broken_call};
use super::{Graph, REQUEST_BYTES};
use crate::mail::transport::{MailboxAccess, Recipients, SendPermit};
use crate::mail::verdict::Verdict;
use mailgate_types::message::Message;

impl Graph {
    /// Creates a draft and sends it. A failure before it is sent leaves the outcome clear.
    pub(super) async fn by_draft(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
        until: Instant,
        permit: &dyn SendPermit,
    ) -> Verdict {
        // Leaves some time for sending.
        let preparation = Patience {
            each: self.command,
            until: until - self.command.min(self.data / 2),
        };
        let made = if in_base64(message.size()) <= REQUEST_BYTES {
            let content = GraphContent::Mime(base64(message));
            self.create(account, content, preparation).await
        } else {
            self.put_together(account, recipients, message, preparation)
                .await
        };
        let prepared = match made {
            Ok(prepared) => prepared,
            Err(verdict) => return verdict,
        };
        let patience = Patience {
            each: self.data,
            until,
        };
        let answered = self
            .send_draft(account, &prepared.id, patience, permit)
            .await;
        let answer = match answered {
            Ok(GraphResponse { status: 202, .. }) => return prepared.sent(message),
            Ok(answer) => answer,
            Err(error) => {
                let verdict = of_broken_call(Stage::Submission, error);
                return self.ended(account, &prepared, message, verdict).await;
            }
        };
        let verdict = of_answer(Stage::Submission, &answer);
        // Graph has also reported itself or the mailbox as busy for messages that were sent
        // (learn.microsoft.com/answers/questions/1465421 and 5629476).
        if !matches!(verdict, Verdict::Temporary { .. }) && answer.status != 503 {
            return self.ended(account, &prepared, message, verdict).await;
        }
        let may_go_on = matches!(verdict, Verdict::Unknown(_));
        let state = self.state_when_busy(account, &prepared, may_go_on);
        let verdict = match (state.await, verdict) {
            (Some(State::Sent), _) => return prepared.sent(message),
            (Some(State::Draft), Verdict::Unknown(failure)) => Verdict::Temporary {
                failure,
                retry_after: answer.retry_after,
            },
            // A busy mailbox may show nothing at all: the draft stays, and the message is retried.
            (None, verdict @ Verdict::Temporary { .. }) => return verdict,
            (_, verdict) => verdict,
        };
        self.ended(account, &prepared, message, verdict).await
    }

    /// Finds out whether a draft with an unclear result was sent, and deletes it if not.
    async fn ended(
        &self,
        account: &MailboxAccess,
        prepared: &Prepared,
        message: &Message,
        verdict: Verdict,
    ) -> Verdict {
        match verdict {
            Verdict::Unknown(failure) => self.trace(account, prepared, message, failure).await,
            verdict => {
                self.remove(account, &prepared.id).await;
                verdict
            }
        }
    }
}
