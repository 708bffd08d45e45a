//! The SMTP transport: submission with XOAUTH2 or OAUTHBEARER, through the mailbox's own provider.

pub(crate) mod connection;
mod idle;
pub(crate) mod reply;

#[cfg(any(test, feature = "fuzzing"))]
pub use connection::fuzzing::smtp_replies;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::mail::mailbox_limiter::MailboxLimiter;
use crate::mail::transport::{MailTransport, MailboxAccess, Recipients, SendPermit};
use crate::mail::verdict::{Failure, Verdict};
use mailgate_settings::{PluginSettings, ProviderKind, SendingSettings};
use mailgate_types::message::Message;

use connection::{Connection, Content, Credential, Endpoint, Envelope, StageError};
use idle::IdleConnections;
use reply::Reply;

/// The codes for a daily limit, which is temporary although the class says otherwise: Google's; Exchange's for a
/// mailbox's recipients, and for a tenant's external ones.
const DAILY_LIMITS: [&str; 4] = ["5.4.5", "5.1.90", "5.7.232", "5.7.233"];

/// The same for Exchange's store, which reports it with any failure code (`554 5.2.0 STOREDRV.Submission.Exception:
/// SubmissionQuotaExceededException`).
const QUOTA_EXCEPTION: &str = "SubmissionQuotaExceeded";

/// Marks of a mailbox that may not send as the message's sender: the codes of Exchange's store and transport, and the
/// texts that accompany more general codes.
const SENDER_CODES: [&str; 2] = ["5.2.252", "5.7.60"];
const SENDER_WORDS: [&str; 2] = ["SendAsDenied", "to send as this sender"];

/// How long to wait once a daily limit is reached.
const DAILY_LIMIT_WAIT: Duration = Duration::from_hours(4);

/// Authentication credentials invalid (RFC 4954 §6).
const CREDENTIALS_INVALID: &str = "5.7.8";

/// A provider's submission server, with connections kept between messages.
pub struct SmtpTransport {
    endpoint: Endpoint,
    connector: TlsConnector,
    idle: IdleConnections,
    limiter: MailboxLimiter,
    /// Time limit for everything before the message itself.
    preparation: Duration,
    /// Exchange may give a message another Message-ID.
    keeps_message_ids: bool,
}

impl std::fmt::Debug for SmtpTransport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SmtpTransport")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl SmtpTransport {
    /// Creates a transport without connecting.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        tls: Arc<ClientConfig>,
        sending: &SendingSettings,
        hello: &str,
    ) -> Self {
        Self {
            endpoint: Endpoint {
                host: settings.smtp.host.clone(),
                port: settings.smtp.port,
                tls: settings.smtp_tls,
                hello: hello.to_owned(),
                connect: sending.connect,
                command: sending.command,
                data: sending.data,
            },
            connector: TlsConnector::from(tls),
            idle: IdleConnections::new(sending.idle_connection, settings.limits.concurrency),
            limiter: MailboxLimiter::new(settings.limits.concurrency),
            preparation: sending.connect + sending.command * 2,
            keeps_message_ids: settings.kind != ProviderKind::Microsoft,
        }
    }

    async fn submit_once(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
        permit: &dyn SendPermit,
    ) -> Verdict {
        let prepare = async {
            let place = self.limiter.take(account.credential).await;
            (place, self.prepare(account, recipients, message).await)
        };
        let Ok((_place, prepared)) = timeout(self.preparation, prepare).await else {
            return Verdict::temporary(Failure::own(format!(
                "the provider was not ready for the message within {} s",
                self.preparation.as_secs()
            )));
        };
        match prepared {
            Ok((connection, envelope)) => {
                self.finish(connection, envelope, account, message, permit)
                    .await
            }
            Err(verdict) => verdict,
        }
    }

    /// A connection on which the envelope has been accepted or refused; or the verdict if there is none.
    async fn prepare(
        &self,
        account: &MailboxAccess,
        recipients: &Recipients,
        message: &Message,
    ) -> Result<(Connection, Envelope), Verdict> {
        let kept = self.idle.take(account.credential, account.generation);
        if let Some(mut connection) = kept {
            match begin(&mut connection, account, recipients, message).await {
                Ok(envelope) => return Ok((connection, envelope)),
                // A kept connection may have died meanwhile; try a new one.
                Err(error) => tracing::debug!(
                    credential_id = %account.credential, %error, "a kept connection had ended"
                ),
            }
        }
        // A failure before MAIL concerns the connection, and may not recur.
        let passing = |error: StageError| Verdict::temporary(Failure::own(error.to_string()));
        let mut connection = Connection::open(&self.endpoint, &self.connector)
            .await
            .map_err(passing)?;
        match connection
            .authenticate(&account.address, Credential::Token(&account.access_token))
            .await
        {
            Ok(()) => {}
            Err(StageError::Refused(reply)) => return Err(authentication_refused(&reply)),
            // The provider's next token would be no better.
            Err(error @ StageError::Unspeakable(_)) => {
                return Err(Verdict::Permanent(Failure::own(error.to_string())));
            }
            Err(error) => return Err(passing(error)),
        }
        let envelope = begin(&mut connection, account, recipients, message)
            .await
            .map_err(passing)?;
        Ok((connection, envelope))
    }

    async fn finish(
        &self,
        mut connection: Connection,
        envelope: Envelope,
        account: &MailboxAccess,
        message: &Message,
        permit: &dyn SendPermit,
    ) -> Verdict {
        let (reply, reusable) = match envelope {
            Envelope::Refused { reply, reusable } => (reply, reusable),
            Envelope::Accepted => match connection.content(message, permit).await {
                Content::Replied(reply) => (reply, true),
                Content::RefusedEarly(reply) => (reply, false),
                Content::NotSent(error) => {
                    return Verdict::temporary(Failure::own(error.to_string()));
                }
                Content::Unknown(error) => {
                    return Verdict::Unknown(Failure::own(error.to_string()));
                }
            },
        };
        if reusable && reply.code != 421 && connection.is_quiet() {
            self.idle
                .put(account.credential, account.generation, connection);
        }
        // Only 250 is success; any other reply that isn't a refusal leaves the outcome unknown.
        match reply.code {
            250 => Verdict::sent(),
            400.. => refused(&reply),
            _ => Verdict::Unknown(reply.failure()),
        }
    }
}

impl MailTransport for SmtpTransport {
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

    fn tells_message_id(&self, _scopes: &[String]) -> bool {
        self.keeps_message_ids
    }

    fn share_among(&self, living: usize) {
        self.limiter.share_among(living);
    }

    fn drop_idle_connections(&self) {
        self.idle.drop_expired();
        self.limiter.drop_unused();
    }
}

/// Sends the envelope on a connection that is ready for it.
async fn begin(
    connection: &mut Connection,
    account: &MailboxAccess,
    recipients: &Recipients,
    message: &Message,
) -> Result<Envelope, StageError> {
    let envelope = connection
        .begin(
            &account.address,
            &recipients.addresses,
            recipients.smtputf8,
            message,
        )
        .await?;
    match envelope {
        // The server is about to close the connection (RFC 5321 §3.8): the envelope itself was not refused.
        Envelope::Refused { reply, .. } if reply.code == 421 => Err(StageError::Refused(reply)),
        envelope => Ok(envelope),
    }
}

/// The verdict on a refused message.
fn refused(reply: &Reply) -> Verdict {
    let failure = reply.failure();
    let day_is_used_up = reply
        .enhanced()
        .is_some_and(|code| DAILY_LIMITS.contains(&code))
        || failure.text.contains(QUOTA_EXCEPTION);
    let sender_is_refused = reply
        .enhanced()
        .is_some_and(|code| SENDER_CODES.contains(&code))
        || SENDER_WORDS
            .iter()
            .any(|words| failure.text.contains(words));
    match (reply.is_permanent(), reply.enhanced()) {
        (true, _) if day_is_used_up => Verdict::Temporary {
            failure,
            retry_after: Some(DAILY_LIMIT_WAIT),
        },
        // The token expired while its connection was kept.
        (true, Some(CREDENTIALS_INVALID)) if matches!(reply.code, 530 | 535) => {
            Verdict::TokenRefused(failure)
        }
        (true, _) if reply.code == 530 => Verdict::TokenRefused(failure),
        (true, _) if sender_is_refused => Verdict::SenderRefused(failure),
        (true, _) => Verdict::Permanent(failure),
        (false, _) => Verdict::temporary(failure),
    }
}

/// The verdict on a failed login, which is temporary unless the reply says otherwise. Only 535 concerns the token;
/// Microsoft's 5.7.139 says that the tenant has disabled SMTP submission, which a new token would not change.
fn authentication_refused(reply: &Reply) -> Verdict {
    let failure = reply.failure();
    match (reply.code, reply.enhanced()) {
        (535, Some("5.7.139")) => Verdict::Permanent(failure),
        (535 | 334, _) => Verdict::TokenRefused(failure),
        _ => Verdict::temporary(failure),
    }
}

/// The verdict on the reply to a message, or to a login.
#[cfg(test)]
pub(crate) fn verdict_on(code: u16, text: &str, is_log_in: bool) -> Verdict {
    let reply = Reply {
        code,
        lines: vec![text.to_owned()],
    };
    if is_log_in {
        authentication_refused(&reply)
    } else {
        refused(&reply)
    }
}
