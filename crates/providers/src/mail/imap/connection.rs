//! One connection to an IMAP server: TLS, an access token, and the few commands needed for reading. No mailbox is ever
//! opened for writing; at most a message is appended to one.
//!
//! Every command has a timeout, and all of them together a deadline. After any error the connection is unusable and
//! must be dropped.

mod authenticate;
mod command;
pub(super) mod fetch;
pub(super) mod mailbox;
pub(super) mod search;

use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::framing::{Framing, NotAResponse};
use super::response::parse::parse;
use super::response::{Condition, Response, Status};
use crate::mail::bearer::Unspeakable;
use mailgate_settings::Endpoint;

/// Maximum size of one read.
const READ_BYTES: usize = 16 * 1024;

/// Time limit for LOGOUT.
const GOOD_BYE: Duration = Duration::from_secs(2);

/// The time limits of the stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) command: Duration,
    /// From connecting to the last response.
    pub(super) look: Duration,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImapError {
    #[error("{0} can't be reached: {1}")]
    Connect(String, std::io::Error),
    #[error("no trusted TLS connection to {0}: {1}")]
    Tls(String, std::io::Error),
    #[error("the server took too long")]
    TimedOut,
    #[error("the connection to the server broke: {}", .0.kind())]
    Broken(#[from] std::io::Error),
    #[error(transparent)]
    NotAResponse(#[from] NotAResponse),
    #[error("no command can hold this name or Message-ID")]
    Unspeakable,
    #[error(transparent)]
    Token(#[from] Unspeakable),
    #[error("{} {}", .0.code_name(), .0.text)]
    Refused(Status),
    #[error("the server closed the connection: {} {}", .0.code_name(), .0.text)]
    Bye(Status),
}

/// A connection, authenticated once [`Connection::authenticate`] has succeeded.
pub(super) struct Connection {
    server: Endpoint,
    pub(super) stream: TlsStream<TcpStream>,
    received: BytesMut,
    framing: Framing,
    /// The capabilities that the server last announced; empty if none.
    capabilities: Vec<String>,
    /// The tag of the last command.
    tag: u32,
    command: Duration,
    pub(super) deadline: Instant,
}

impl Connection {
    /// Connects, starts TLS, and waits for the greeting.
    pub(super) async fn open(
        server: &Endpoint,
        connector: &TlsConnector,
        limits: Limits,
    ) -> Result<Self, ImapError> {
        let deadline = Instant::now() + limits.look;
        let host = &server.host;
        let connect = async {
            let stream = TcpStream::connect((host.as_str(), server.port))
                .await
                .map_err(|error| ImapError::Connect(host.clone(), error))?;
            stream.set_nodelay(true)?;
            let failed = |error| ImapError::Tls(host.clone(), error);
            let name = ServerName::try_from(host.clone())
                .map_err(|error| failed(std::io::Error::other(error)))?;
            connector.connect(name, stream).await.map_err(failed)
        };
        let stream = timeout(limits.connect, connect)
            .await
            .map_err(|_| ImapError::TimedOut)??;
        let mut connection = Self {
            server: server.clone(),
            stream,
            received: BytesMut::new(),
            framing: Framing::default(),
            capabilities: Vec::new(),
            tag: 0,
            command: limits.command,
            deadline,
        };
        let end = connection.end_of_command();
        let greeting = timeout_at(end, connection.response())
            .await
            .map_err(|_| ImapError::TimedOut)??;
        match greeting {
            Response::Untagged(status) if status.condition == Condition::Ok => Ok(connection),
            _ => Err(NotAResponse.into()),
        }
    }

    /// Logs out, if the server responds in time.
    pub(super) async fn logout(mut self) {
        // Nothing depends on it, and BYE ends the command with an error anyway.
        let farewell = async {
            drop(self.run(&[b"LOGOUT"], |_| {}).await);
            drop(self.stream.shutdown().await);
        };
        drop(timeout(GOOD_BYE, farewell).await);
    }

    async fn can(&mut self, capability: &str) -> Result<bool, ImapError> {
        if self.capabilities.is_empty() {
            self.run(&[b"CAPABILITY"], |_| {}).await?;
        }
        Ok(self.capabilities.iter().any(|it| it == capability))
    }

    fn end_of_command(&self) -> Instant {
        self.deadline.min(Instant::now() + self.command)
    }

    pub(super) async fn response(&mut self) -> Result<Response, ImapError> {
        loop {
            if let Some(frame) = self.framing.take(&mut self.received)? {
                let response = parse(&frame)?;
                self.note_capabilities(&response);
                return match response {
                    Response::Untagged(status) if status.condition == Condition::Bye => {
                        Err(ImapError::Bye(status))
                    }
                    response => Ok(response),
                };
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(ImapError::Broken(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    fn note_capabilities(&mut self, response: &Response) {
        match response {
            Response::Capability(capabilities) => self.capabilities.clone_from(capabilities),
            Response::Tagged(_, status) | Response::Untagged(status) => {
                if let [name, capabilities @ ..] = status.code.as_slice()
                    && name == "CAPABILITY"
                {
                    self.capabilities = capabilities.to_vec();
                }
            }
            _ => {}
        }
    }
}

/// A quoted string (RFC 9051 §4.3); `None` where it must be a literal.
pub(super) fn quoted(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let speakable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    speakable.then(|| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_where_they_can_be() {
        for (text, expected) in [
            ("Sent Mail", Some("\"Sent Mail\"")),
            ("a\"b\\c", Some("\"a\\\"b\\\\c\"")),
            ("", Some("\"\"")),
            ("a\r\nb", None),
            ("a\0", None),
            ("\u{7f}", None),
            ("zo\u{eb}", None),
        ] {
            assert_eq!(quoted(text.as_bytes()).as_deref(), expected, "{text:?}");
        }
        assert_eq!(quoted(b"\xff"), None);
    }
}
