//! Microsoft Graph: a message is sent as a draft, whose Message-ID finds it again if the outcome is unknown; or by
//! `sendMail` if only that scope was granted. Mailboxes are read through it too.

mod api;
mod draft;
mod indivisible;
mod outcome;
mod reader;
mod structure;
mod transfer_encoding;
mod upload;
mod verdict;

#[cfg(any(test, feature = "fuzzing"))]
pub use draft::fuzzing::graph_draft;
#[cfg(any(test, feature = "fuzzing"))]
pub use reader::fuzzing::graph_answers;

use std::io::Write;
use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::{Client, Method};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::bcc_from_envelope::bcc_from_envelope;
use super::mailbox_limiter::MailboxLimiter;
use super::own_headers::own_message_id;
use super::transport::{MailTransport, MailboxAccess, Recipients, SendPermit};
use super::verdict::{Failure, Verdict};
use mailgate_settings::{PluginSettings, SendingSettings};
use mailgate_types::message::Message;
use mailgate_types::message_id;

use api::{Api, GraphContent, GraphResponse, Patience, encoded};
use draft::Draft;
use outcome::State;
use upload::nonsense;
use verdict::{Stage, of_answer, of_broken_call};

/// Maximum size of one request, in bytes: Graph's 4 MB.
const REQUEST_BYTES: usize = 4_000_000;

/// The largest message that a draft's upload sessions accept: Graph's 150 MB.
const MESSAGE_BYTES: usize = 150_000_000;

/// Time limit for deleting a draft that isn't sent.
const REMOVAL: Duration = Duration::from_secs(10);

/// Microsoft Graph: a transport, and a reader.
#[derive(Debug)]
pub struct Graph {
    api: Api,
    limiter: MailboxLimiter,
    /// Time limit for getting a slot.
    waiting: Duration,
    /// Time limit for each call.
    command: Duration,
    /// Time limit for the message itself: creating its draft, attaching its files, and sending it.
    data: Duration,
}

/// A draft in the mailbox.
struct Prepared {
    id: String,
    /// Its Message-ID, angle brackets included.
    message_id: Option<String>,
}

impl Graph {
    /// Graph at the configured address. `http` must not follow redirects.
    #[must_use]
    pub fn new(settings: &PluginSettings, http: Client, sending: &SendingSettings) -> Self {
        Self {
            api: Api::new(http, &settings.api_base_url),
            limiter: MailboxLimiter::new(settings.limits.concurrency),
            waiting: sending.connect + sending.command * 2,
            command: sending.command,
            data: sending.data,
        }
    }

    async fn submit_once(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
        permit: &dyn SendPermit,
    ) -> Verdict {
        let message = match bcc_from_envelope(recipients, message) {
            Ok(message) => message,
            Err(failure) => return Verdict::Permanent(failure),
        };
        let place = timeout(self.waiting, self.limiter.take(account.credential));
        let Ok(_place) = place.await else {
            return Verdict::temporary(Failure::own(format!(
                "the mailbox was busy with other messages for {} s",
                self.waiting.as_secs()
            )));
        };
        let until = Instant::now() + self.data;
        if grants(&account.scopes, "Mail.ReadWrite") {
            self.by_draft(account, recipients, &message, until, permit)
                .await
        } else {
            self.by_send_mail(account, &message, until, permit).await
        }
    }

    /// Sends a message directly, without a draft. It can't be found again.
    async fn by_send_mail(
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

    /// Creates a draft and sends it. A failure before it is sent leaves the outcome clear.
    async fn by_draft(
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

    async fn create(
        &self,
        account: &MailboxAccess,
        content: GraphContent,
        patience: Patience,
    ) -> Result<Prepared, Verdict> {
        let address = self.api.address("/messages");
        let answer = self
            .api
            .call(account, Method::POST, &address, content, patience)
            .await
            .map_err(|error| of_broken_call(Stage::Preparation, error))?;
        if answer.status != 201 {
            return Err(of_answer(Stage::Preparation, &answer));
        }
        let draft = answer.json();
        let text = |name: &str| draft[name].as_str().map(str::to_owned);
        Ok(Prepared {
            id: text("id").ok_or_else(|| nonsense("names no draft"))?,
            message_id: text("internetMessageId"),
        })
    }

    /// Builds a draft from the parts of a message that is too large to be submitted whole.
    async fn put_together(
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
    async fn remove(&self, account: &MailboxAccess, id: &str) {
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
    fn sent(&self, message: &Message) -> Verdict {
        let own = own_message_id(message);
        let given = self.message_id.as_ref();
        Verdict::Sent {
            message_id: given
                .filter(|id| own.as_ref() != Some(id))
                .map(|id| message_id::bounded(id)),
        }
    }
}

impl MailTransport for Graph {
    fn submit<'a>(
        &'a self,
        account: &'a MailboxAccess,
        recipients: &'a Recipients,
        message: &'a Message,
        permit: &'a dyn SendPermit,
    ) -> BoxFuture<'a, Verdict> {
        self.submit_once(account, recipients, message, permit)
            .boxed()
    }

    /// A message sent without a draft has no known Message-ID.
    fn tells_message_id(&self, scopes: &[String]) -> bool {
        grants(scopes, "Mail.ReadWrite")
    }

    fn share_among(&self, living: usize) {
        self.limiter.share_among(living);
    }

    fn drop_idle_connections(&self) {
        self.limiter.drop_unused();
    }
}

/// The verdict on the response to a `draft`, an `upload` or a `send`.
#[cfg(test)]
pub(crate) fn verdict_on(
    stage: &str,
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
) -> Verdict {
    let stage = match stage {
        "draft" => Stage::Preparation,
        "upload" => Stage::Upload,
        _ => Stage::Submission,
    };
    let answer = GraphResponse {
        status,
        retry_after,
        body,
    };
    of_answer(stage, &answer)
}

/// Whether a scope was granted, with or without the URI of its resource in front.
fn grants(scopes: &[String], wanted: &str) -> bool {
    scopes.iter().any(|scope| {
        scope
            .rsplit('/')
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    })
}

/// The base64 length of this many bytes.
fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn base64(message: &Message) -> String {
    let mut encoded = String::with_capacity(in_base64(message.size()));
    let mut writer = EncoderStringWriter::from_consumer(&mut encoded, &STANDARD);
    for chunk in message.chunks() {
        // Writing to memory can't fail.
        let _ = writer.write_all(chunk);
    }
    writer.into_inner();
    encoded
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn scopes_in_every_spelling() {
        for (scopes, granted) in [
            (&["https://graph.microsoft.com/Mail.ReadWrite"][..], true),
            (&["openid", "mail.readwrite"], true),
            (&["Mail.Read", "Mail.Send"], false),
            (&["Mail.ReadWrite.Shared"], false),
            (&["https://graph.microsoft.com/xMail.ReadWrite"], false),
            (&[], false),
        ] {
            let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
            assert_eq!(grants(&scopes, "Mail.ReadWrite"), granted, "{scopes:?}");
        }
    }

    #[test]
    fn base64_over_the_seams_of_pieces() {
        use ::base64::Engine;

        let message = Message::from_pieces(vec![
            Bytes::from("Subject: x\r\n"),
            Bytes::from("M"),
            Bytes::from("essage-ID: <a@x.org>\r\n\r"),
            Bytes::from("\nMessage-ID: <b@x.org>\r\n"),
        ]);
        let whole = message.chunks().collect::<Vec<_>>().concat();
        let encoded = base64(&message);
        assert_eq!(encoded, STANDARD.encode(whole));
        assert_eq!(encoded.len(), in_base64(message.size()));
        assert_eq!(own_message_id(&message).as_deref(), Some("<a@x.org>"));
    }
}
