//! The sandbox's submission server: accepts mail from mailboxes that present an access token, and the gateway's own
//! mail, and fails on demand.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

use super::inbox::{ArrivedMessage, Arriving, Inbox};
use super::oauth::Authorization;
use super::returned::{self, ReturnedMail};
use super::slow::SlowMail;
use super::switches::{Effect, Switches};
use mailgate_smtp::connection::{Backend, Delivered};
use mailgate_smtp::protocol::authentication::Credentials;
use mailgate_smtp::protocol::reply::Reply;
use mailgate_smtp::protocol::session::Envelope;
use mailgate_types::clock::SharedClock;
use mailgate_types::email_address::EmailAddress;

/// The account for the gateway's own mail: the only one with a password, which need not be secret either. Its name is
/// also the only address that it may send from.
pub(super) const RELAY_ACCOUNT: &str = "mailgate@sandbox.example";
pub(super) const RELAY_PASSWORD: &str = "sandbox";

/// The SMTP backend of the sandbox.
#[derive(Debug, Clone)]
pub(super) struct SandboxMail {
    pub(super) authorization: Authorization,
    pub(super) inbox: Inbox,
    pub(super) slow: SlowMail,
    pub(super) switches: Switches,
    pub(super) returned: ReturnedMail,
    pub(super) clock: SharedClock,
}

/// The fault that a recipient's local part triggers; a tag after a plus sign makes no difference.
fn fault(recipient: &EmailAddress) -> String {
    let local_part = recipient.local_part();
    local_part
        .split('+')
        .next()
        .unwrap_or(local_part)
        .to_ascii_lowercase()
}

impl Backend for SandboxMail {
    /// The mailbox.
    type Identity = String;
    type Incoming = Option<Arriving>;

    async fn authenticate(&self, credentials: Credentials, _: IpAddr) -> Result<String, Reply> {
        match credentials {
            Credentials::Bearer { username, token }
                if self
                    .authorization
                    .authenticate(&username, token.expose_secret()) =>
            {
                Ok(username)
            }
            Credentials::Password {
                username, password, ..
            } if username == RELAY_ACCOUNT
                && bool::from(
                    password
                        .expose_secret()
                        .as_bytes()
                        .ct_eq(RELAY_PASSWORD.as_bytes()),
                ) =>
            {
                Ok(username)
            }
            _ => Err(Reply::new(
                535,
                "5.7.8",
                "The access token is invalid or belongs to another mailbox, or the password is wrong",
            )),
        }
    }

    async fn revoked(&self, _: &String) {
        std::future::pending::<()>().await;
    }

    async fn recipient(&self, _: &String, recipient: &EmailAddress) -> Result<(), Reply> {
        match fault(recipient).as_str() {
            "tempfail" => Err(Reply::new(451, "4.3.0", "Try again later (tempfail)")),
            "quota" => Err(Reply::new(452, "4.2.2", "The mailbox is full (quota)")),
            "permfail" => Err(Reply::new(550, "5.1.1", "No such user here (permfail)")),
            "limit" => Err(Reply::new(554, "5.7.1", "Sending limit exceeded (limit)")),
            _ => Ok(()),
        }
    }

    async fn receive(&self, incoming: &mut Option<Arriving>, piece: Bytes) -> std::io::Result<()> {
        let arriving = match incoming.take() {
            Some(arriving) => arriving,
            None => self.inbox.begin().await?,
        };
        *incoming = Some(arriving.append(piece).await?);
        Ok(())
    }

    async fn deliver(
        &self,
        mailbox: &String,
        envelope: Envelope,
        incoming: Option<Arriving>,
        rest: Bytes,
    ) -> Delivered {
        // As at real providers, nobody may send as somebody else.
        let sender = envelope.sender.as_str();
        if !sender.eq_ignore_ascii_case(mailbox) {
            return Delivered::Reply(Reply::new(
                553,
                "5.7.1",
                "The envelope sender is not the mailbox that has authenticated",
            ));
        }
        let asks_for = |word| {
            envelope
                .recipients
                .iter()
                .any(|recipient| fault(recipient) == word)
        };
        // The gateway's own mail isn't the demo's.
        let effect = if mailbox == RELAY_ACCOUNT {
            None
        } else {
            self.switches.take(|_| true)
        };
        match effect {
            Some(Effect::Fail) => {
                let text = "No such user here (the sandbox's switch)";
                return Delivered::Reply(Reply::new(550, "5.1.1", text));
            }
            Some(Effect::Defer) => {
                let text = "Try again later (the sandbox's switch)";
                return Delivered::Reply(Reply::new(451, "4.3.0", text));
            }
            _ => {}
        }
        if effect == Some(Effect::Slow) || asks_for("slow") {
            self.slow.pause().await;
        }
        let recipients: Vec<String> = envelope
            .recipients
            .iter()
            .map(ToString::to_string)
            .collect();
        match self
            .store(mailbox, sender, &recipients, incoming, rest)
            .await
        {
            Ok(_) if asks_for("drop") => Delivered::Cut,
            Ok(message) => {
                if let Some(effect) = effect.filter(|effect| effect.returns()) {
                    self.send_back(effect, &message).await;
                }
                Delivered::Reply(Reply::new(250, "2.0.0", &format!("OK {}", message.id)))
            }
            Err(error) => {
                tracing::error!(%error, "the sandbox can't store a message");
                Delivered::Reply(Reply::new(
                    452,
                    "4.3.1",
                    "The sandbox can't store the message",
                ))
            }
        }
    }
}

impl SandboxMail {
    /// Puts a bounce or a reply into the mailbox that a message came from.
    async fn send_back(&self, effect: Effect, message: &ArrivedMessage) {
        let original = match self.inbox.raw(&message.id).await {
            Ok(Some(original)) => original,
            // It has been deleted since.
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "the sandbox can't read what it sends back");
                return;
            }
        };
        let (mailbox, recipients) = (&message.mailbox, &message.envelope_to);
        let now = self.clock.now();
        let returned = match effect {
            Effect::Reply => returned::reply(mailbox, recipients, &original, now),
            _ => Some(returned::bounce(mailbox, recipients, &original, now)),
        };
        if let Some(bytes) = returned {
            self.returned.add(mailbox, bytes);
        }
    }

    async fn store(
        &self,
        mailbox: &str,
        sender: &str,
        recipients: &[String],
        incoming: Option<Arriving>,
        rest: Bytes,
    ) -> std::io::Result<Arc<ArrivedMessage>> {
        let (inbox, now) = (&self.inbox, self.clock.now());
        match incoming {
            None => inbox.add(mailbox, sender, recipients, now, rest).await,
            Some(arriving) => {
                let arrived = arriving.append(rest).await?;
                inbox
                    .add_arrived(mailbox, sender, recipients, now, arrived)
                    .await
            }
        }
    }
}
