//! Sends a message by `sendMail`, for mailboxes that granted no more.

use tokio::time::Instant;

use super::api::{GraphResponse, Patience};
use super::base64_message::{base64, in_base64};
use super::verdict::{Stage, of_answer, of_broken_call};
use super::{Graph, REQUEST_BYTES};
use crate::mail::transport::{MailboxAccess, SendPermit};
use crate::mail::verdict::{Failure, Verdict};
use mailgate_types::message::Message;

impl Graph {
    /// Sends a message directly, without a draft. It can't be found again.
    pub(super) async fn by_send_mail(
        &self,
        account: &MailboxAccess,
        message: &Message,
        until: Instant,
        permit: &dyn SendPermit,
    ) -> Verdict {
        if in_base64(message.size()) > REQUEST_BYTES {
            return Verdict::Permanent(Failure::own(
                "5.3.4 The message is too large to be sent without a draft, which the mailbox's \
                 user has not granted: the scope Mail.ReadWrite is missing",
            ));
        }
        let address = self.api.address("/sendMail");
        let patience = Patience {
            each: self.data,
            until,
        };
        let answered = self
            .api
            .send_mime(account, &address, base64(message), patience, permit)
            .await;
        match answered {
            Ok(GraphResponse { status: 202, .. }) => Verdict::sent(),
            // Seen for messages that were not sent.
            Ok(answer) if answer.status == 200 => Verdict::Unknown(Failure::own(
                "Microsoft Graph answered 200 instead of 202, which it does for messages that it \
                 doesn't send",
            )),
            Ok(answer) => of_answer(Stage::Submission, &answer),
            Err(error) => of_broken_call(Stage::Submission, error),
        }
    }
}
