//! One connection to a submission server: TLS, EHLO, AUTH, and mail transactions.
//!
//! Every stage has a timeout. After any error the connection is unusable and must be dropped, so that no reply can be
//! taken for another command's.

mod authentication;
mod extensions;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod transaction;

use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

pub(crate) use authentication::Credential;
use extensions::Extensions;
pub(crate) use transaction::{Content, Envelope};

use super::reply::{NotAReply, Reply, take_reply};
use crate::mail::bearer::Unspeakable;
use mailgate_settings::SubmissionTls;

/// Where to connect, and the timeout of each stage.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: SubmissionTls,
    pub(crate) hello: String,
    pub(crate) connect: Duration,
    pub(crate) command: Duration,
    pub(crate) data: Duration,
}

/// Why a stage failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    #[error("{0} can't be reached: {1}")]
    Connect(String, std::io::Error),
    #[error("no trusted TLS connection to {0}: {1}")]
    Tls(String, std::io::Error),
    #[error("{0} offers no STARTTLS, and mail is never sent in clear")]
    NoStartTls(String),
    #[error("{0} sent something between STARTTLS and TLS")]
    Injected(String),
    #[error("the provider took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the connection to the provider broke: {}", io_words(.0))]
    Broken(#[from] std::io::Error),
    #[error(transparent)]
    NotAReply(#[from] NotAReply),
    #[error("the provider sent an unsolicited reply")]
    Unsolicited,
    #[error("the provider answered out of turn: {} {}", .0.code, .0.lines.join(" "))]
    OutOfTurn(Reply),
    #[error("{0} offers neither AUTH PLAIN nor AUTH LOGIN")]
    NoMechanism(String),
    #[error("{} {}", .0.code, .0.lines.join(" "))]
    Refused(Reply),
    #[error(transparent)]
    Unspeakable(#[from] Unspeakable),
    #[error("{0}")]
    Withheld(String),
}

/// For an unexpected EOF, the TLS library's own message is only advice for programmers.
fn io_words(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        "it was closed by the provider".to_owned()
    } else {
        error.to_string()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, authenticated once [`Connection::authenticate`] has succeeded.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    received: BytesMut,
    extensions: Extensions,
    host: String,
    port: u16,
    command: Duration,
    data: Duration,
}

impl Connection {
    /// Connects, starts TLS unless the endpoint is configured for plain text, and sends EHLO.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        connector: &TlsConnector,
    ) -> Result<Self, StageError> {
        let host = &endpoint.host;
        let stream = timeout(
            endpoint.connect,
            TcpStream::connect((host.as_str(), endpoint.port)),
        )
        .await
        .map_err(|_| StageError::TimedOut(endpoint.connect))?
        .map_err(|error| StageError::Connect(host.clone(), error))?;
        stream.set_nodelay(true)?;
        let mut connection = match endpoint.tls {
            SubmissionTls::Clear => {
                let mut connection = Self::over(endpoint, stream);
                connection.expect(220).await?;
                connection
            }
            SubmissionTls::Implicit => {
                let stream = encrypt(endpoint, connector, stream).await?;
                let mut connection = Self::over(endpoint, stream);
                connection.expect(220).await?;
                connection
            }
            SubmissionTls::StartTls => {
                let mut clear = Self::over(endpoint, stream);
                clear.expect(220).await?;
                let extensions = clear.hello(&endpoint.hello).await?;
                if !extensions.starttls {
                    return Err(StageError::NoStartTls(host.clone()));
                }
                clear.send(b"STARTTLS\r\n").await?;
                clear.expect(220).await?;
                // Plain text received after the 220 would pass for a reply under TLS.
                if !clear.received.is_empty() {
                    return Err(StageError::Injected(host.clone()));
                }
                let stream = encrypt(endpoint, connector, clear.stream).await?;
                Self::over(endpoint, stream)
            }
        };
        connection.extensions = connection.hello(&endpoint.hello).await?;
        Ok(connection)
    }

    fn over(endpoint: &Endpoint, stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            received: BytesMut::with_capacity(1_024),
            extensions: Extensions::default(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            command: endpoint.command,
            data: endpoint.data,
        }
    }

    async fn hello(&mut self, name: &str) -> Result<Extensions, StageError> {
        self.send(format!("EHLO {name}\r\n").as_bytes()).await?;
        let reply = self.expect(250).await?;
        Ok(Extensions::read(&reply))
    }

    async fn ask(&mut self, line: &str) -> Result<Reply, StageError> {
        let line = Zeroizing::new(format!("{line}\r\n"));
        self.send(line.as_bytes()).await?;
        self.reply(self.command).await
    }

    /// Whether no unsolicited data has been received.
    pub(crate) fn is_quiet(&self) -> bool {
        self.received.is_empty()
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), StageError> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        timeout(self.command, write)
            .await
            .map_err(|_| StageError::TimedOut(self.command))?
            .map_err(StageError::Broken)
    }

    async fn reply(&mut self, limit: Duration) -> Result<Reply, StageError> {
        let read = async {
            loop {
                if let Some(reply) = take_reply(&mut self.received)? {
                    return Ok(reply);
                }
                if self.stream.read_buf(&mut self.received).await? == 0 {
                    return Err(StageError::Broken(std::io::ErrorKind::UnexpectedEof.into()));
                }
            }
        };
        timeout(limit, read)
            .await
            .map_err(|_| StageError::TimedOut(limit))?
    }

    async fn expect(&mut self, code: u16) -> Result<Reply, StageError> {
        let reply = self.reply(self.command).await?;
        if reply.code == code {
            Ok(reply)
        } else {
            Err(StageError::Refused(reply))
        }
    }
}

async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
    endpoint: &Endpoint,
    connector: &TlsConnector,
    stream: S,
) -> Result<tokio_rustls::client::TlsStream<S>, StageError> {
    let failed = |error| StageError::Tls(endpoint.host.clone(), error);
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|error| failed(std::io::Error::other(error)))?;
    timeout(endpoint.connect, connector.connect(name, stream))
        .await
        .map_err(|_| StageError::TimedOut(endpoint.connect))?
        .map_err(failed)
}
