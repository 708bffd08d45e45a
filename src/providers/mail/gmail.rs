//! Gmail's REST interface: mail leaves by `messages.send`, mailboxes are read in [`inbox`].

mod content;
mod inbox;
mod verdict;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use inbox::fuzzing::gmail_answers;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Client, Method, RequestBuilder};
use secrecy::ExposeSecret;
use tokio::time::timeout;

use crate::config::{PluginSettings, SendingSettings};
use crate::providers::answer::{Answer, no_answer};
use crate::providers::mail::addressed::addressed;
use crate::providers::mail::places::Places;
use crate::providers::mail::transport::{Account, Leave, MailTransport, Recipients};
use crate::providers::mail::verdict::{Failure, Verdict};
use crate::types::clock::SharedClock;
use crate::types::message::Message;

use content::Content;

/// Bytes of a message up to which it goes out within JSON; the interface takes 5 MB of it.
const LARGEST_RAW: usize = 3_500_000;

/// Bytes of a message that the interface takes (`maxSize` of its upload, 35 MiB).
const LARGEST: usize = 36_700_160;

/// The largest answer that is read, less the message that it may hold.
const MAXIMUM_ANSWER: usize = 4 * 1024 * 1024;

/// Gmail's REST interface.
#[derive(Debug)]
pub struct GmailApi {
    http: Client,
    base: String,
    places: Places,
    clock: SharedClock,
    /// For the wait for a place.
    preparation: Duration,
    data: Duration,
    command: Duration,
}

impl GmailApi {
    /// The interface that `settings.api_base_url` names.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        sending: &SendingSettings,
        http: Client,
        clock: SharedClock,
    ) -> Self {
        Self {
            http,
            base: settings.api_base_url.clone(),
            places: Places::new(settings.limits.concurrency),
            clock,
            preparation: sending.connect + sending.command * 2,
            data: sending.data,
            command: sending.command,
        }
    }

    fn request(&self, account: &Account, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(account.access_token.expose_secret())
    }

    async fn submit_once(
        &self,
        account: &Account,
        recipients: &Recipients,
        message: &Message,
        leave: &dyn Leave,
    ) -> Verdict {
        let message = match addressed(recipients, message) {
            Ok(message) => message,
            Err(failure) => return Verdict::Permanent(failure),
        };
        if message.size() > LARGEST {
            return Verdict::Permanent(Failure::own(format!(
                "5.3.4 The message has {} bytes, and Gmail takes {LARGEST} at most",
                message.size()
            )));
        }
        let place = self.places.take(account.credential);
        let Ok(_place) = timeout(self.preparation, place).await else {
            return Verdict::temporary(Failure::own(format!(
                "the mailbox had no place for the message within {} s",
                self.preparation.as_secs()
            )));
        };
        let (path, content_type, content) = if message.size() <= LARGEST_RAW {
            (
                "/gmail/v1/users/me/messages/send",
                "application/json",
                Content::json(&message),
            )
        } else {
            (
                "/upload/gmail/v1/users/me/messages/send?uploadType=media",
                "message/rfc822",
                Content::plain(&message),
            )
        };
        if let Err(why) = leave.ask().await {
            return Verdict::temporary(Failure::own(why));
        }
        let answered = self
            .request(account, Method::POST, path)
            .timeout(self.data)
            .header(CONTENT_TYPE, content_type)
            .header(CONTENT_LENGTH, content.length)
            .body(content.body)
            .send()
            .await;
        match answered {
            Ok(response) => {
                let now = self.clock.now();
                // The documented answer is a message; Gmail leaves the content out, others don't.
                let maximum = MAXIMUM_ANSWER + message.size() * 2;
                let answer = Answer::read(response, maximum, now).await;
                verdict::sent(&answer, now)
            }
            // Nobody acts on a message that has not come in whole.
            Err(error) if error.is_connect() || !content.handed_out.is_whole() => {
                Verdict::temporary(Failure::own(no_answer(error)))
            }
            Err(error) => Verdict::Unknown(Failure::own(no_answer(error))),
        }
    }
}

impl MailTransport for GmailApi {
    fn submit<'a>(
        &'a self,
        account: &'a Account,
        recipients: &'a Recipients,
        message: &'a Message,
        leave: &'a dyn Leave,
    ) -> BoxFuture<'a, Verdict> {
        self.submit_once(account, recipients, message, leave)
            .boxed()
    }

    fn share_among(&self, living: usize) {
        self.places.share_among(living);
    }

    fn drop_idle_connections(&self) {
        self.places.drop_unused();
    }
}
