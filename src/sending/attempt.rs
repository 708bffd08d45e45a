//! One attempt: token → submit → verdict.

use super::Sending;
use crate::mailboxes::{Mailbox, TokenError};
use crate::providers::mail::transport::Recipients;
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::types::message::Message;

impl Sending {
    /// Submits a message once. A token that the provider refuses is refreshed, and the submission
    /// tried once more: nothing has gone out before.
    pub(super) async fn attempt(
        &self,
        mailbox: &Mailbox,
        recipients: &Recipients,
        message: &Message,
    ) -> Verdict {
        let Some(provider) = self.providers.get(mailbox.plugin) else {
            return Verdict::temporary(Failure::own(format!("{} is not set up", mailbox.plugin)));
        };
        let mut refused = None;
        loop {
            let account = match self.mailboxes.account(mailbox, refused).await {
                Ok(account) => account,
                Err(error) => return no_token(&error),
            };
            let verdict = provider
                .transport
                .submit(&account, recipients, message)
                .await;
            match (verdict, refused) {
                (Verdict::TokenRefused(_), None) => refused = Some(account.generation),
                (Verdict::TokenRefused(failure), Some(_)) => return Verdict::Permanent(failure),
                (verdict, _) => return verdict,
            }
        }
    }
}

fn no_token(error: &TokenError) -> Verdict {
    match error {
        TokenError::Disconnected => Verdict::Permanent(Failure::own(
            "5.7.8 The mailbox is no longer connected: its user has to connect it again",
        )),
        TokenError::Unavailable(text) => Verdict::temporary(Failure::own(text.clone())),
        // What the database or the sealing keys say is for the operator.
        error => {
            tracing::error!(%error, "no token for a mailbox");
            Verdict::temporary(Failure::own(
                "the gateway can't open the mailbox at the moment",
            ))
        }
    }
}
