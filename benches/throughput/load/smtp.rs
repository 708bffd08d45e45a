//! Submission with STARTTLS and AUTH PLAIN. The envelope is pipelined (RFC 2920).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mailgate_providers::tls;
use memchr::memmem;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::message::{self, RECIPIENT, SENDER};
use super::{Client, Outcome, SmtpServer};

/// What all connections to a server share.
pub(super) struct Login {
    port: u16,
    connector: TlsConnector,
    authentication: String,
    envelope: String,
    content: String,
    source: Option<IpAddr>,
}

impl Login {
    pub(super) fn new(server: &SmtpServer) -> Outcome<Self> {
        let mut config = Arc::unwrap_or_clone(tls::client(Some(&server.ca))?);
        // Every handshake is a whole one, at either server.
        config.resumption = Resumption::disabled();
        // What the clients take of the machine is missing to whoever is measured.
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(AnyCertificate));
        let plain = STANDARD.encode(format!("\0{}\0{}", server.user, server.password));
        Ok(Self {
            port: server.port,
            connector: TlsConnector::from(Arc::new(config)),
            authentication: format!("AUTH PLAIN {plain}\r\n"),
            envelope: format!("MAIL FROM:<{SENDER}>\r\nRCPT TO:<{RECIPIENT}>\r\nDATA\r\n"),
            content: format!("{}.\r\n", message::raw()),
            source: None,
        })
    }

    /// With connections from this address.
    pub(super) fn from(mut self, source: IpAddr) -> Self {
        self.source = Some(source);
        self
    }

    /// An authenticated connection.
    pub(super) async fn connect(&self) -> Outcome<Connection<TlsStream<TcpStream>>> {
        let socket = TcpSocket::new_v4()?;
        if let Some(source) = self.source {
            socket.bind(SocketAddr::from((source, 0)))?;
        }
        let server = SocketAddr::from(([127, 0, 0, 1], self.port));
        let stream = socket.connect(server).await?;
        stream.set_nodelay(true)?;
        let mut clear = Connection::over(stream);
        clear.reply("220").await?;
        clear.command("EHLO localhost\r\n", "250").await?;
        clear.command("STARTTLS\r\n", "220").await?;
        let name = ServerName::try_from("localhost")?;
        let mut connection = Connection::over(self.connector.connect(name, clear.stream).await?);
        connection.command("EHLO localhost\r\n", "250").await?;
        connection.command(&self.authentication, "235").await?;
        Ok(connection)
    }

    pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        connection: &mut Connection<S>,
    ) -> Outcome<()> {
        connection.command(&self.envelope, "250").await?;
        connection.reply("250").await?;
        connection.reply("354").await?;
        connection.command(&self.content, "250").await
    }
}

/// Takes any certificate, and looks at no signature.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

pub(super) struct Connection<S> {
    stream: S,
    received: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn over(stream: S) -> Self {
        Self {
            stream,
            received: Vec::with_capacity(1_024),
        }
    }

    async fn command(&mut self, command: &str, code: &str) -> Outcome<()> {
        self.stream.write_all(command.as_bytes()).await?;
        self.stream.flush().await?;
        self.reply(code).await
    }

    /// The next reply, all of its lines; fails unless it has this code.
    async fn reply(&mut self, code: &str) -> Outcome<()> {
        loop {
            while let Some(end) = memmem::find(&self.received, b"\r\n") {
                let is_last = self.received.get(3) != Some(&b'-');
                let is_expected = self.received.starts_with(code.as_bytes());
                let line: Vec<u8> = self.received.drain(..end + 2).collect();
                if !is_expected {
                    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                    return Err(format!("{code} was expected, and {line:?} came").into());
                }
                if is_last {
                    return Ok(());
                }
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err("the server has closed the connection".into());
            }
        }
    }
}

/// A client that keeps its connection.
pub(super) struct Kept {
    login: Arc<Login>,
    connection: Connection<TlsStream<TcpStream>>,
}

impl Client for Kept {
    async fn send(&mut self) -> Outcome<()> {
        self.login.send(&mut self.connection).await
    }
}

pub(super) async fn kept(server: &SmtpServer, clients: usize) -> Outcome<Vec<Kept>> {
    let login = Arc::new(Login::new(server)?);
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(Kept {
            connection: login.connect().await?,
            login: Arc::clone(&login),
        });
    }
    Ok(connected)
}

/// A client that connects anew for each message.
pub(super) struct OneEach(Arc<Login>);

impl Client for OneEach {
    async fn send(&mut self) -> Outcome<()> {
        let mut connection = self.0.connect().await?;
        self.0.send(&mut connection).await?;
        connection.command("QUIT\r\n", "221").await
    }
}

pub(super) fn one_each(server: &SmtpServer, clients: usize) -> Outcome<Vec<OneEach>> {
    let login = Arc::new(Login::new(server)?);
    Ok((0..clients).map(|_| OneEach(Arc::clone(&login))).collect())
}
