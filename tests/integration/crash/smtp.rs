//! A client of the SMTP door. It keeps its connection as long as it lasts, and fails where the client of the
//! other tests would panic.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mailgate_providers::tls;
use mailgate_types::ids::LogId;
use mailgate_types::plugin::Plugin;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::SECOND_MAILBOX;
use super::clients::{Account, Unreached};
use super::ledger::{Message, Told};
use crate::support::gateway::MAILBOX;

/// Longest wait for a reply; a database that is away for a while is waited for.
const PATIENCE: Duration = Duration::from_secs(90);

type Connection = BufReader<TlsStream<TcpStream>>;

/// How a client comes to TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    StartTls,
    Tls,
}

/// One client.
pub struct SmtpSender {
    account: Account,
    port: Port,
    connector: TlsConnector,
    connection: Option<Connection>,
}

impl SmtpSender {
    pub fn new(account: Account, port: Port) -> Self {
        let settings = tls::client(Some(&account.ca_file)).expect("the CA is good");
        Self {
            account,
            port,
            connector: TlsConnector::from(settings),
            connection: None,
        }
    }

    pub async fn send(&mut self, message: &Message) -> Result<Told, Unreached> {
        // A connection is kept only once its last message was answered.
        let kept = self.connection.take();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await.map_err(|_| Unreached)?,
        };
        (self.envelope(&mut connection, message).await).map_err(|_| Unreached)?;
        // From here on the gateway may have taken it.
        let Ok(reply) = content(
            &mut connection,
            message,
            self.account.sent_folder.as_deref(),
        )
        .await
        else {
            return Ok(Told::Nothing);
        };
        self.connection = Some(connection);
        Ok(told(&reply).unwrap_or(Told::Other(reply)))
    }

    /// Says good-bye; the next message goes over a new connection.
    pub async fn leave(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && write(&mut connection, "QUIT\r\n").await.is_ok()
        {
            drop(reply(&mut connection).await);
        }
    }

    async fn connect(&self) -> io::Result<Connection> {
        let connecting = async {
            let stream = match self.port {
                Port::Tls => TcpStream::connect(self.account.tls).await?,
                Port::StartTls => self.begin_tls().await?,
            };
            stream.set_nodelay(true)?;
            let name = ServerName::try_from("localhost").expect("a name");
            self.connector.connect(name, stream).await
        };
        let mut connection = BufReader::new(tokio::time::timeout(PATIENCE, connecting).await??);
        if self.port == Port::Tls {
            expect(&reply(&mut connection).await?, "220 ")?;
        }
        let account = &self.account;
        let plain = STANDARD.encode(format!("\0{}\0{}", account.slug, account.send_key));
        for (line, expected) in [
            ("EHLO client.example", "250"),
            (&format!("AUTH PLAIN {plain}"), "235 "),
        ] {
            write(&mut connection, &format!("{line}\r\n")).await?;
            expect(&reply(&mut connection).await?, expected)?;
        }
        Ok(connection)
    }

    /// A connection whose other end waits for the handshake.
    async fn begin_tls(&self) -> io::Result<TcpStream> {
        let mut clear = BufReader::new(TcpStream::connect(self.account.starttls).await?);
        expect(&reply(&mut clear).await?, "220 ")?;
        for (line, expected) in [("EHLO client.example", "250"), ("STARTTLS", "220 ")] {
            write(&mut clear, &format!("{line}\r\n")).await?;
            expect(&reply(&mut clear).await?, expected)?;
        }
        Ok(clear.into_inner())
    }

    async fn envelope(&self, connection: &mut Connection, message: &Message) -> io::Result<()> {
        let commands = format!(
            "MAIL FROM:<{}>\r\nRCPT TO:<{}>\r\nDATA\r\n",
            mailbox(message.plugin),
            message.recipient
        );
        write(connection, &commands).await?;
        for expected in ["250 ", "250 ", "354 "] {
            expect(&reply(connection).await?, expected)?;
        }
        Ok(())
    }
}

pub fn mailbox(plugin: Plugin) -> &'static str {
    match plugin {
        Plugin::A => MAILBOX,
        Plugin::B => SECOND_MAILBOX,
    }
}

async fn content(
    connection: &mut Connection,
    message: &Message,
    sent_folder: Option<&Path>,
) -> io::Result<String> {
    let key = (message.key.as_ref()).map(|key| format!("Idempotency-Key: {key}\r\n"));
    let send_at =
        (message.send_at).map(|at| format!("X-Mailgate-Send-At: {}\r\n", at.to_rfc3339()));
    let content = format!(
        "From: <{}>\r\nTo: <{}>\r\nMessage-ID: <{}@client.example>\r\nSubject: {}\r\n{}{}\r\n{}\r\n",
        mailbox(message.plugin),
        message.recipient,
        // Backwards: the marker itself is counted.
        message.marker.chars().rev().collect::<String>(),
        message.marker,
        key.unwrap_or_default(),
        send_at.unwrap_or_default(),
        message.body("\r\n")
    );
    if let Some(folder) = sent_folder.filter(|_| message.plugin == Plugin::B) {
        let copied = fs::write(folder.join(format!("{}:2,S", message.marker)), &content);
        copied.expect("a copy can be saved");
    }
    write(connection, &format!("{content}.\r\n")).await?;
    reply(connection).await
}

fn told(reply: &str) -> Option<Told> {
    let log = || -> Option<LogId> { reply.split(' ').nth(2)?.parse().ok() };
    match (reply.get(..4)?, reply) {
        ("250 ", reply) if reply.contains(" sent via plugin_") => Some(Told::Sent(log()?)),
        ("250 ", reply) if reply.contains(" queued, next attempt ") => Some(Told::Queued(log()?)),
        ("250 ", reply) if reply.contains(" scheduled for ") => Some(Told::Scheduled(log()?)),
        ("550 ", reply) if reply.contains("Send-At must be later") => Some(Told::Late),
        ("451 ", reply) if reply.contains("Idempotency-Key") => Some(Told::InFlight),
        ("451 ", _) => Some(Told::NotTaken),
        ("554 ", reply) if reply.contains("may have been sent") => Some(Told::Nothing),
        // A mailbox that the gateway doesn't know.
        ("550 ", reply) if reply.contains("not authorized") => None,
        (code, reply) if code.starts_with('5') => Some(Told::Refused(None, reply.to_owned())),
        _ => None,
    }
}

async fn write(connection: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    let writing = async {
        connection.write_all(text.as_bytes()).await?;
        connection.flush().await
    };
    tokio::time::timeout(PATIENCE, writing).await?
}

/// The last line of the next reply.
async fn reply(connection: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    loop {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, connection.read_line(&mut line)).await??;
        if !line.ends_with("\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.as_bytes().get(3) != Some(&b'-') {
            return Ok(line.trim_end().to_owned());
        }
    }
}

fn expect(reply: &str, expected: &str) -> io::Result<()> {
    if reply.starts_with(expected) {
        return Ok(());
    }
    Err(io::Error::other(reply.to_owned()))
}
