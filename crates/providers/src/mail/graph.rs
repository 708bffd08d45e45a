//! Microsoft Graph: a message is sent as a draft, whose Message-ID finds it again if the outcome is unknown; or by
//! `sendMail` if only that scope was granted. Mailboxes are read through it too.

mod api;
mod base64_message;
mod draft;
mod indivisible;
mod outcome;
mod prepare;
mod reader;
mod send_mail;
mod structure;
mod submit_draft;
mod transfer_encoding;
mod upload;
mod verdict;

#[cfg(any(test, feature = "fuzzing"))]
pub use draft::fuzzing::graph_draft;
#[cfg(any(test, feature = "fuzzing"))]
pub use reader::fuzzing::graph_answers;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Client;
use tokio::time::{Instant, timeout};

use super::bcc_from_envelope::bcc_from_envelope;
use super::mailbox_limiter::MailboxLimiter;
use super::transport::{MailTransport, MailboxAccess, Recipients, SendPermit};
use super::verdict::{Failure, Verdict};
use mailgate_settings::{PluginSettings, SendingSettings};
use mailgate_types::message::Message;

use api::Api;

/// Maximum size of one request, in bytes: Graph's 4 MB.
const REQUEST_BYTES: usize = 4_000_000;

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
    use verdict::Stage;

    let stage = match stage {
        "draft" => Stage::Preparation,
        "upload" => Stage::Upload,
        _ => Stage::Submission,
    };
    let answer = api::GraphResponse {
        status,
        retry_after,
        body,
    };
    verdict::of_answer(stage, &answer)
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

#[cfg(test)]
mod tests {
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
}
