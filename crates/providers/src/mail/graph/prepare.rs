//! Creates a draft in the mailbox, whole or from parts, and deletes one that isn't sent.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::api::{GraphContent, GraphResponse, Patience, encoded};
use super::draft::{self, Draft};
use super::upload::nonsense;
use super::verdict::{Stage, of_answer, of_broken_call};
use super::{Graph, REQUEST_BYTES};
use crate::mail::own_headers::own_message_id;
use crate::mail::transport::{MailboxAccess, Recipients};
use crate::mail::verdict::{Failure, Verdict};
use mailgate_types::message::Message;
use mailgate_types::message_id;

/// The largest message that a draft's upload sessions accept: Graph's 150 MB.
const MESSAGE_BYTES: usize = 150_000_000;

/// Time limit for deleting a draft that isn't sent.
const REMOVAL: Duration = Duration::from_secs(10);

/// A draft in the mailbox.
pub(super) struct Prepared {
    pub(super) id: String,
    /// Its Message-ID, angle brackets included.
    pub(super) message_id: Option<String>,
}

impl Graph {
    pub(super) async fn create(
        &self,
        account: &MailboxAccess,
        content: GraphContent,
        patience: Patience,
    ) -> Result<Prepared, Verdict> {
        let created = self.create_at("/messages", account, content, patience);
        let draft = created.await?.json();
        let text = |name: &str| draft[name].as_str().map(str::to_owned);
        Ok(Prepared {
            id: text("id").ok_or_else(|| nonsense("names no draft"))?,
            message_id: text("internetMessageId"),
        })
    }

    /// Creates an object of the mailbox by a POST, which Graph answers with 201.
    pub(super) async fn create_at(
        &self,
        path: &str,
        account: &MailboxAccess,
        content: GraphContent,
        patience: Patience,
    ) -> Result<GraphResponse, Verdict> {
        let address = self.api.address(path);
        let answer = self
            .api
            .call(account, Method::POST, &address, content, patience)
            .await
            .map_err(|error| of_broken_call(Stage::Preparation, error))?;
        match answer.status {
            201 => Ok(answer),
            _ => Err(of_answer(Stage::Preparation, &answer)),
        }
    }

    /// Builds a draft from the parts of a message that is too large to be submitted whole.
    pub(super) async fn put_together(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
        patience: Patience,
    ) -> Result<Prepared, Verdict> {
        if message.size() > MESSAGE_BYTES {
            return Err(Verdict::Permanent(Failure::own(
                "5.3.4 The message is larger than the 150 MB that Microsoft Graph takes",
            )));
        }
        let Draft {
            mut fields,
            from,
            attachments,
        } = converted(recipients, message).await?;
        // Graph fills in the mailbox's own address.
        let is_own = |from: &Value| {
            let address = from["emailAddress"]["address"].as_str();
            address.is_some_and(|address| address.eq_ignore_ascii_case(&account.address))
        };
        if let Some(from) = from.filter(|from| !is_own(from)) {
            fields["from"] = from;
        }
        // The text must fit in one request.
        if fields.to_string().len() > REQUEST_BYTES {
            return Err(Verdict::Permanent(Failure::own(
                "5.3.4 The message's text is larger than the 4 MB that Microsoft Graph takes",
            )));
        }
        let prepared = self
            .create(account, GraphContent::Json(fields), patience)
            .await?;
        for attachment in attachments {
            let attached = self.attach(account, &prepared.id, attachment, patience);
            if let Err(verdict) = attached.await {
                self.remove(account, &prepared.id).await;
                return Err(verdict);
            }
        }
        Ok(prepared)
    }

    /// Deletes a draft that isn't sent, on a best-effort basis: a failure leaves a stray draft in the mailbox.
    pub(super) async fn remove(&self, account: &MailboxAccess, id: &str) {
        let limit = self.command.min(REMOVAL);
        let patience = Patience {
            each: limit,
            until: Instant::now() + limit,
        };
        let address = self.api.address(&format!("/messages/{}", encoded(id)));
        let answered = self
            .api
            .call(
                account,
                Method::DELETE,
                &address,
                GraphContent::Nothing,
                patience,
            )
            .await;
        match answered {
            Ok(GraphResponse {
                status: 200..300 | 404,
                ..
            }) => {}
            Ok(GraphResponse { status, .. }) => {
                tracing::info!(credential_id = %account.credential, status, "a draft that was not sent stays in the mailbox");
            }
            Err(error) => {
                tracing::info!(credential_id = %account.credential, %error, "a draft that was not sent stays in the mailbox");
            }
        }
    }
}

impl Prepared {
    /// It was sent; the draft's Message-ID is reported if it differs from the message's own.
    pub(super) fn sent(&self, message: &Message) -> Verdict {
        let own = own_message_id(message);
        let given = self.message_id.as_ref();
        Verdict::Sent {
            message_id: given
                .filter(|id| own.as_ref() != Some(id))
                .map(|id| message_id::bounded(id)),
        }
    }
}

/// The message as Graph's fields, converted off the async threads.
async fn converted(recipients: &Recipients, message: &Message) -> Result<Draft, Verdict> {
    let (message, recipients) = (message.clone(), recipients.addresses.clone());
    tokio::task::spawn_blocking(move || {
        let mut mime = Vec::with_capacity(message.size());
        message
            .chunks()
            .for_each(|chunk| mime.extend_from_slice(chunk));
        draft::convert(&mime, &recipients)
    })
    .await
    .map_err(|_| {
        Verdict::temporary(Failure::own(
            "the gateway could not take the message to pieces",
        ))
    })?
    .map_err(Verdict::Permanent)
}
