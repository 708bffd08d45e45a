//! The gateway's own mail, through the submission server of the settings. One connection per message: there are few.
//!
//! A submission has two halves, so that its caller can note between them that the message may be out: up to the
//! server's 354 nothing was sent; after it, only the server knows.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::mail::smtp::connection::{
    Connection, Content, Credential, Endpoint, Envelope, StageError,
};
use crate::mail::smtp::reply::Reply;
use crate::mail::transport::AlwaysPermitted;
use crate::mail::verdict::Failure;
use crate::tls::{self, ClientTlsError};
use mailgate_settings::RelaySettings;
use mailgate_types::message::Message;
use mailgate_types::named_address::NamedAddress;

/// Replies before the message: EHLO, STARTTLS and the like, AUTH in three steps, the envelope.
const COMMANDS: u32 = 8;

/// The relay can't be set up.
#[derive(Debug, thiserror::Error)]
#[error("relay.ca_file: {0}")]
pub struct RelayError(#[from] ClientTlsError);

/// Why the relay doesn't have a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// It may accept it later.
    #[error("{0}")]
    Temporary(Failure),
    /// It never will.
    #[error("{0}")]
    Permanent(Failure),
}

/// The outcome of a message that was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relayed {
    /// The relay has it.
    Sent,
    /// The relay doesn't have it.
    NotSent(NotSent),
    /// The relay may have it: the connection broke before its reply.
    Unknown(Failure),
}

/// The submission server.
pub struct Relay {
    endpoint: Endpoint,
    connector: TlsConnector,
    settings: RelaySettings,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Relay")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The relay waits for the message.
pub struct Submission {
    connection: Connection,
}

impl std::fmt::Debug for Submission {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Submission").finish_non_exhaustive()
    }
}

impl Relay {
    /// `hello` is the name given in EHLO.
    ///
    /// # Errors
    ///
    /// [`RelayError`]: the root certificates can't be read.
    pub fn new(settings: &RelaySettings, hello: &str) -> Result<Self, RelayError> {
        let tls: Arc<ClientConfig> = tls::client(settings.ca_file.as_deref())?;
        Ok(Self {
            endpoint: Endpoint {
                host: settings.server.host.clone(),
                port: settings.server.port,
                tls: settings.tls,
                hello: hello.to_owned(),
                connect: settings.connect,
                command: settings.command,
                data: settings.data,
            },
            connector: TlsConnector::from(tls),
            settings: settings.clone(),
        })
    }

    /// The sender of its mail.
    #[must_use]
    pub fn from(&self) -> &NamedAddress {
        &self.settings.from
    }

    /// The longest duration of both halves of a submission together.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.preparation() + self.settings.data + self.settings.command
    }

    fn preparation(&self) -> Duration {
        self.settings.connect * 2 + self.settings.command * COMMANDS
    }

    /// Connects and sends the envelope.
    pub async fn begin(
        &self,
        recipients: &[String],
        smtputf8: bool,
        message: &Message,
    ) -> Result<Submission, NotSent> {
        let limit = self.preparation();
        timeout(limit, self.prepare(recipients, smtputf8, message))
            .await
            .unwrap_or_else(|_| {
                let text = format!("the relay was not ready within {} s", limit.as_secs());
                Err(NotSent::Temporary(Failure::own(text)))
            })
    }

    async fn prepare(
        &self,
        recipients: &[String],
        smtputf8: bool,
        message: &Message,
    ) -> Result<Submission, NotSent> {
        // A refusal before MAIL concerns the connection: its cause can be fixed while the mail waits.
        let passing = |error: StageError| NotSent::Temporary(Failure::own(error.to_string()));
        let mut connection = Connection::open(&self.endpoint, &self.connector)
            .await
            .map_err(passing)?;
        if let Some((username, password)) = &self.settings.credential {
            connection
                .authenticate(username, Credential::Password(password))
                .await
                .map_err(passing)?;
        }
        let sender = self.settings.from.address.as_str();
        match connection
            .begin(sender, recipients, smtputf8, message)
            .await
            .map_err(passing)?
        {
            Envelope::Accepted => Ok(Submission { connection }),
            Envelope::Refused { reply, .. } => Err(refused(&reply)),
        }
    }
}

impl Submission {
    /// Sends the message.
    pub async fn finish(mut self, message: &Message) -> Relayed {
        match self.connection.content(message, &AlwaysPermitted).await {
            Content::Replied(reply) | Content::RefusedEarly(reply) => match reply.code {
                250 => Relayed::Sent,
                400.. => Relayed::NotSent(refused(&reply)),
                _ => Relayed::Unknown(reply.failure()),
            },
            Content::NotSent(error) => {
                Relayed::NotSent(NotSent::Temporary(Failure::own(error.to_string())))
            }
            Content::Unknown(error) => Relayed::Unknown(Failure::own(error.to_string())),
        }
    }
}

fn refused(reply: &Reply) -> NotSent {
    // 530 concerns the login, not the message (RFC 4954 §6).
    if reply.is_permanent() && reply.code != 530 {
        NotSent::Permanent(reply.failure())
    } else {
        NotSent::Temporary(reply.failure())
    }
}
