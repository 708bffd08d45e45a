//! Gmail's REST API: mail is sent by `messages.send`, mailboxes are read in
//! [`inbox`] and [`new_mail`].

mod fetch;
mod inbox;
mod message;
mod new_mail;
pub mod send_as;
mod verdict;

#[cfg(any(test, feature = "fuzzing"))]
pub use inbox::fuzzing::gmail_answers;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, RequestBuilder};
use secrecy::ExposeSecret;
use tokio::time::timeout;

use crate::answer::{ProviderResponse, no_answer};
use crate::mail::bcc_from_envelope::bcc_from_envelope;
use crate::mail::mailbox_limiter::MailboxLimiter;
use crate::mail::own_headers::own_message_id;
use crate::mail::smtp::SmtpTransport;
use crate::mail::transport::{MailTransport, MailboxAccess, Recipients, SendPermit};
use crate::mail::verdict::{Failure, Verdict};
use crate::mail::withheld::{Unanswered, WithheldContent};
use mailgate_settings::{PluginSettings, SendingSettings};
use mailgate_types::clock::SharedClock;
use mailgate_types::message::Message;
use mailgate_types::message_id;
use mailgate_types::plugin::Plugin;

/// Largest message that is sent within JSON, in bytes; the API accepts 5 MB of JSON.
const LARGEST_RAW: usize = 3_500_000;

/// Largest message that the API accepts, in bytes (`maxSize` of its upload, 35 MiB).
const LARGEST: usize = 36_700_160;

/// The largest response that is read, not counting the message that it may include.
const MAXIMUM_ANSWER: usize = 4 * 1024 * 1024;

/// The scope for full access, including SMTP.
const FULL_SCOPE: &str = "https://mail.google.com/";

/// Gmail's REST API.
#[derive(Debug)]
pub struct GmailApi {
    http: Client,
    base: String,
    limiter: MailboxLimiter,
    clock: SharedClock,
    /// Time limit for getting a slot.
    preparation: Duration,
    data: Duration,
    command: Duration,
    plugin: Plugin,
    /// An alternative transport, for users who granted the scope for it.
    smtp: Option<SmtpTransport>,
}

impl GmailApi {
    /// The API at `settings.api_base_url`, with the provider's submission server as an alternative.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        sending: &SendingSettings,
        http: Client,
        clock: SharedClock,
        smtp: Option<SmtpTransport>,
    ) -> Self {
        Self {
            http,
            base: settings.api_base_url.clone(),
            limiter: MailboxLimiter::new(settings.limits.concurrency),
            clock,
            preparation: sending.connect + sending.command * 2,
            data: sending.data,
            command: sending.command,
            plugin: settings.plugin,
            smtp,
        }
    }

    fn request(&self, account: &MailboxAccess, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(account.access_token.expose_secret())
    }

    async fn submit_once(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
        permit: &dyn SendPermit,
    ) -> Verdict {
        let is_readable = inbox::may_read_headers(&account.scopes);
        let own_id = own_message_id(message);
        let addressed = bcc_from_envelope(recipients, message);
        // No documentation says that Gmail removes a Bcc header, so it is sent only if needed. Gmail would also send
        // the message to anyone in the headers who isn't a recipient.
        let needs_envelope = (addressed.as_ref()).map_or(true, |it| it.size() != message.size());
        if let Some(smtp) = self.smtp.as_ref().filter(|_| needs_envelope)
            && account.scopes.iter().any(|scope| scope == FULL_SCOPE)
        {
            return smtp.submit(account, recipients, message, permit).await;
        }
        let message = match addressed {
            Ok(addressed) => addressed,
            Err(failure) => return Verdict::Permanent(failure),
        };
        if message.size() > LARGEST {
            return Verdict::Permanent(Failure::own(format!(
                "5.3.4 The message has {} bytes, and Gmail takes {LARGEST} at most",
                message.size()
            )));
        }
        let place = self.limiter.take(account.credential);
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
                WithheldContent::json(&message),
            )
        } else {
            (
                "/upload/gmail/v1/users/me/messages/send?uploadType=media",
                "message/rfc822",
                WithheldContent::plain(&message),
            )
        };
        let request = self
            .request(account, Method::POST, path)
            .timeout(self.data)
            .header(CONTENT_TYPE, content_type);
        let answered = content.send(request, permit).await;
        match answered {
            Ok(response) => {
                let now = self.clock.now();
                // The documented response is a message; Gmail omits the content, other servers don't.
                let maximum = MAXIMUM_ANSWER + message.size() * 2;
                let answer = ProviderResponse::read(response, maximum, now).await;
                let verdict = verdict::sent(&answer, now);
                if verdict::meaning::is_switched_off(&answer) {
                    self.tell_operator(account, &verdict);
                }
                match (verdict, answer.body["id"].as_str()) {
                    (Verdict::Sent { .. }, Some(id)) if is_readable => {
                        let given = self.given_message_id(account, id).await;
                        Verdict::Sent {
                            message_id: given
                                .filter(|given| own_id.as_ref() != Some(given))
                                .map(|given| message_id::bounded(&given)),
                        }
                    }
                    (verdict, _) => verdict,
                }
            }
            Err(Unanswered::Withheld(why)) => Verdict::temporary(Failure::own(why)),
            Err(Unanswered::NotWhole(error)) => Verdict::temporary(Failure::own(no_answer(error))),
            Err(Unanswered::Broken(error)) => Verdict::Unknown(Failure::own(no_answer(error))),
        }
    }
}

impl GmailApi {
    /// Logs and counts a failure that blocks all mail until the operator acts.
    fn tell_operator(&self, account: &MailboxAccess, verdict: &Verdict) {
        metrics::counter!("mailgate_provider_switched_off_total", "plugin" => self.plugin.as_str())
            .increment(1);
        tracing::error!(credential_id = %account.credential, plugin = %self.plugin, ?verdict, "the Gmail API is not enabled for the OAuth client's project: enable the Gmail API in the Google Cloud console; mail waits until then");
    }
}

/// The verdict on a response to a message, and whether the operator must act.
#[cfg(test)]
pub(crate) fn verdict_on(
    status: u16,
    retry_after: Option<Duration>,
    body: serde_json::Value,
) -> (Verdict, bool) {
    // The time that the tables assume.
    let now = chrono::DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z").unwrap_or_default();
    let answer = ProviderResponse {
        status,
        retry_after,
        body,
        is_too_long: false,
    };
    let verdict = verdict::sent(&answer, now.to_utc());
    (verdict, verdict::meaning::is_switched_off(&answer))
}

impl MailTransport for GmailApi {
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

    fn tells_message_id(&self, scopes: &[String]) -> bool {
        inbox::may_read_headers(scopes)
    }

    fn share_among(&self, living: usize) {
        self.limiter.share_among(living);
        if let Some(smtp) = &self.smtp {
            smtp.share_among(living);
        }
    }

    fn drop_idle_connections(&self) {
        self.limiter.drop_unused();
        if let Some(smtp) = &self.smtp {
            smtp.drop_idle_connections();
        }
    }
}
