//! An SMTP client that says just what it is told, byte for byte.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mailgate_providers::tls;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::gateway::{Gateway, MAILBOX};
use crate::support::patience;

const PATIENCE: Duration = patience::PATIENCE;

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to an SMTP server.
pub struct SmtpClient {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl SmtpClient {
    /// In clear; the greeting is still to be read.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it accepts");
        stream.set_nodelay(true).expect("the socket takes it");
        Self {
            stream: Box::new(stream),
            received: Vec::new(),
        }
    }

    /// The handshake, after the server's 220 to STARTTLS or at once.
    pub async fn encrypt(self, ca_file: &Path) -> Self {
        let connector = TlsConnector::from(tls::client(Some(ca_file)).expect("the CA is good"));
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = tokio::time::timeout(PATIENCE, connector.connect(name, self.stream))
            .await
            .expect("the handshake ends")
            .expect("the handshake succeeds");
        Self {
            stream: Box::new(stream),
            received: Vec::new(),
        }
    }

    /// Greeted, encrypted by STARTTLS, EHLO said, authenticated as the gateway's app.
    pub async fn authenticated(gateway: &Gateway) -> Self {
        let mut client = Self::encrypted(gateway).await;
        let plain = format!("\0{}\0{}", gateway.app.slug, gateway.app.send_key.expose());
        let reply = client
            .command(&format!("AUTH PLAIN {}", STANDARD.encode(plain)))
            .await;
        assert!(reply.starts_with("235 "), "{reply}");
        client
    }

    /// Greeted, encrypted by STARTTLS, EHLO said.
    pub async fn encrypted(gateway: &Gateway) -> Self {
        let mut client = Self::connect(gateway.starttls_address()).await;
        client.reply().await;
        client.command("EHLO client.example").await;
        let reply = client.command("STARTTLS").await;
        assert!(reply.starts_with("220 "), "{reply}");
        let mut client = client.encrypt(&gateway.ca_file).await;
        client.command("EHLO client.example").await;
        client
    }

    /// MAIL, RCPT and DATA up to the 354.
    pub async fn begin_data(&mut self, recipient: &str) {
        for (command, code) in [
            (format!("MAIL FROM:<{MAILBOX}>"), "250 "),
            (format!("RCPT TO:<{recipient}>"), "250 "),
            ("DATA".to_owned(), "354 "),
        ] {
            let reply = self.command(&command).await;
            assert!(reply.starts_with(code), "{command}: {reply}");
        }
    }

    /// A whole message; answers the reply to it. `content` goes out as it is, its end is added.
    pub async fn submit(&mut self, recipient: &str, content: &[u8]) -> String {
        self.begin_data(recipient).await;
        self.write(content).await;
        self.write(b"\r\n.\r\n").await;
        self.reply().await
    }

    /// Writes these bytes and nothing else.
    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is taken");
        self.stream.flush().await.expect("it is sent");
    }

    /// Writes these bytes, unless the server has closed the connection.
    pub async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// A command line, and the reply to it.
    pub async fn command(&mut self, line: &str) -> String {
        self.write(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// The next whole reply, its lines separated by newlines.
    pub async fn reply(&mut self) -> String {
        self.next_reply().await.expect("a reply comes")
    }

    /// The next whole reply, or nothing when the server closes the connection.
    pub async fn next_reply(&mut self) -> Option<String> {
        loop {
            if let Some(length) = reply_length(&self.received) {
                let reply: Vec<u8> = self.received.drain(..length).collect();
                let reply = String::from_utf8(reply).expect("replies are ASCII");
                return Some(reply.trim_end().replace("\r\n", "\n"));
            }
            let mut bytes = [0; 4_096];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes))
                .await
                .expect("a reply comes in time");
            match read {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            }
        }
    }
}

/// Where the first whole reply ends: with the first line that has a space behind its code.
fn reply_length(received: &[u8]) -> Option<usize> {
    let mut start = 0;
    while let Some(length) = received[start..]
        .windows(2)
        .position(|pair| pair == b"\r\n")
    {
        let end = start + length + 2;
        if received.get(start + 3) != Some(&b'-') {
            return Some(end);
        }
        start = end;
    }
    None
}
