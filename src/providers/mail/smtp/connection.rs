//! One connection to a submission server: TLS, EHLO, AUTH, and mail transactions.
//!
//! Every stage has its time-out. After any error the connection is of no use: whoever holds it drops
//! it, so that no reply can ever be taken for another command's.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::reply::{NotAReply, Reply, take_reply};
use crate::config::SubmissionTls;
use crate::types::message::Message;

/// How long a reply is waited for that may explain why a write failed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The last command of an envelope, pipelined where it may be (RFC 2920 §3.1).
const DATA: &str = "DATA\r\n";

/// What one write takes at least, while there is more.
const WRITE_BYTES: usize = 64 * 1024;

/// Where to connect, and how long each stage may take.
#[derive(Debug, Clone)]
pub(in crate::providers) struct Endpoint {
    pub(in crate::providers) host: String,
    pub(in crate::providers) port: u16,
    pub(in crate::providers) tls: SubmissionTls,
    pub(in crate::providers) hello: String,
    pub(in crate::providers) connect: Duration,
    pub(in crate::providers) command: Duration,
    pub(in crate::providers) data: Duration,
}

/// Why a stage failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::providers) enum StageError {
    #[error("{0} can't be reached: {1}")]
    Connect(String, std::io::Error),
    #[error("no trusted TLS connection to {0}: {1}")]
    Tls(String, std::io::Error),
    #[error("{0} offers no STARTTLS, and mail never leaves in clear")]
    NoStartTls(String),
    #[error("{0} sent something between STARTTLS and TLS")]
    Injected(String),
    #[error("the provider took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the connection to the provider broke: {}", io_words(.0))]
    Broken(#[from] std::io::Error),
    #[error(transparent)]
    NotAReply(#[from] NotAReply),
    #[error("{0} offers neither AUTH PLAIN nor AUTH LOGIN")]
    NoMechanism(String),
    #[error("{} {}", .0.code, .0.lines.join(" "))]
    Refused(Reply),
}

/// What opens a server to a user.
#[derive(Debug, Clone, Copy)]
pub(in crate::providers) enum Credential<'a> {
    /// An OAuth access token, by XOAUTH2.
    Token(&'a SecretString),
    /// A password, by PLAIN (RFC 4616), or LOGIN where the server has no other.
    Password(&'a SecretString),
}

/// An end without a good-bye has no words of its own but the TLS library's advice to programmers.
fn io_words(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        "it was closed by the provider".to_owned()
    } else {
        error.to_string()
    }
}

/// What came of a transaction up to DATA's 354.
pub(in crate::providers) enum Envelope {
    /// The message may follow.
    Accepted,
    /// Refused.
    Refused {
        reply: Reply,
        /// The connection is good for another transaction.
        reusable: bool,
    },
}

/// What came of the message itself.
#[derive(Debug)]
pub(in crate::providers) enum Content {
    /// The server's reply to the whole message.
    Replied(Reply),
    /// The server refused before it had the whole message; the connection is of no more use.
    RefusedEarly(Reply),
    /// The end of the message never left: the server can't have it.
    NotSent(StageError),
    /// The message was out, or may have been, and no reply came.
    Unknown(StageError),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What a server said it can do.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own in EHLO"
)]
struct Extensions {
    pipelining: bool,
    size: bool,
    eight_bit_mime: bool,
    smtputf8: bool,
    starttls: bool,
    plain: bool,
    login: bool,
}

impl Extensions {
    fn read(reply: &Reply) -> Self {
        let offers = |keyword: &str| {
            reply.lines.iter().skip(1).any(|line| {
                line.split(' ')
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case(keyword))
            })
        };
        let mechanism = |name: &str| {
            reply.lines.iter().skip(1).any(|line| {
                // `AUTH=` is how very old servers write it.
                let mut words = line.split([' ', '=']);
                words
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case("AUTH"))
                    && words.any(|word| word.eq_ignore_ascii_case(name))
            })
        };
        Self {
            pipelining: offers("PIPELINING"),
            size: offers("SIZE"),
            eight_bit_mime: offers("8BITMIME"),
            smtputf8: offers("SMTPUTF8"),
            starttls: offers("STARTTLS"),
            plain: mechanism("PLAIN"),
            login: mechanism("LOGIN"),
        }
    }
}

/// A connection, authenticated once [`Connection::authenticate`] has said so.
pub(in crate::providers) struct Connection {
    stream: Box<dyn Stream>,
    received: BytesMut,
    extensions: Extensions,
    host: String,
    command: Duration,
    data: Duration,
}

impl Connection {
    /// Connects, encrypts unless the endpoint is to be spoken to in clear, and says EHLO.
    pub(in crate::providers) async fn open(
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
                // Whatever came in clear behind the 220 would pass for a reply under TLS.
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
            command: endpoint.command,
            data: endpoint.data,
        }
    }

    async fn hello(&mut self, name: &str) -> Result<Extensions, StageError> {
        self.send(format!("EHLO {name}\r\n").as_bytes()).await?;
        let reply = self.expect(250).await?;
        Ok(Extensions::read(&reply))
    }

    /// Shows a credential in the way that fits it.
    pub(in crate::providers) async fn authenticate(
        &mut self,
        username: &str,
        credential: Credential<'_>,
    ) -> Result<(), StageError> {
        let reply = match credential {
            Credential::Token(token) => self.show_token(username, token).await?,
            Credential::Password(password) if self.extensions.plain => {
                let response = format!("\0{username}\0{}", password.expose_secret());
                let response = Zeroizing::new(STANDARD.encode(Zeroizing::new(response).as_bytes()));
                self.ask(&format!("AUTH PLAIN {}", response.as_str()))
                    .await?
            }
            Credential::Password(password) if self.extensions.login => {
                self.log_in(username, password).await?
            }
            Credential::Password(_) => return Err(StageError::NoMechanism(self.host.clone())),
        };
        if reply.code == 235 {
            Ok(())
        } else {
            Err(StageError::Refused(reply))
        }
    }

    /// XOAUTH2 with an access token. A refusal comes as a 334 with an explanation, which the client
    /// answers with an empty line, and only then as the reply that counts.
    async fn show_token(
        &mut self,
        username: &str,
        access_token: &SecretString,
    ) -> Result<Reply, StageError> {
        let response = STANDARD.encode(format!(
            "user={username}\x01auth=Bearer {}\x01\x01",
            access_token.expose_secret()
        ));
        let reply = self.ask(&format!("AUTH XOAUTH2 {response}")).await?;
        if reply.code == 334 {
            return self.ask("").await;
        }
        Ok(reply)
    }

    /// LOGIN: user name and password, each when it is asked for.
    async fn log_in(
        &mut self,
        username: &str,
        password: &SecretString,
    ) -> Result<Reply, StageError> {
        let mut reply = self.ask("AUTH LOGIN").await?;
        for answer in [username, password.expose_secret()] {
            if reply.code != 334 {
                return Ok(reply);
            }
            let answer = Zeroizing::new(STANDARD.encode(answer));
            reply = self.ask(&answer).await?;
        }
        Ok(reply)
    }

    async fn ask(&mut self, line: &str) -> Result<Reply, StageError> {
        let line = Zeroizing::new(format!("{line}\r\n"));
        self.send(line.as_bytes()).await?;
        self.reply(self.command).await
    }

    /// MAIL, RCPT and DATA, up to the server's 354. One refused recipient refuses the whole
    /// transaction: a message goes to all of its recipients or to none.
    pub(in crate::providers) async fn begin(
        &mut self,
        sender: &str,
        recipients: &[String],
        smtputf8: bool,
        message: &Message,
    ) -> Result<Envelope, StageError> {
        let mut mail = format!("MAIL FROM:<{sender}>");
        if self.extensions.size {
            mail = format!("{mail} SIZE={}", message.size());
        }
        if !message.is_ascii() {
            if !self.extensions.eight_bit_mime {
                return Ok(own_refusal("5.6.3 The provider takes no 8-bit messages"));
            }
            mail.push_str(" BODY=8BITMIME");
        }
        if smtputf8 {
            if !self.extensions.smtputf8 {
                return Ok(own_refusal(
                    "5.6.7 The provider takes no internationalized addresses",
                ));
            }
            mail.push_str(" SMTPUTF8");
        }
        mail.push_str("\r\n");
        let recipients: Vec<String> = recipients
            .iter()
            .map(|recipient| format!("RCPT TO:<{recipient}>\r\n"))
            .collect();
        // A 354 behind the refusal of one recipient among several could only be answered by hanging up.
        let pipelines_data = self.extensions.pipelining && recipients.len() == 1;
        let replies = if self.extensions.pipelining {
            let data = if pipelines_data { DATA } else { "" };
            self.send(format!("{mail}{}{data}", recipients.concat()).as_bytes())
                .await?;
            let mut replies = Vec::with_capacity(1 + recipients.len());
            for _ in 0..=recipients.len() {
                match self.reply(self.command).await {
                    Ok(reply) => replies.push(reply),
                    // A server may hang up behind its refusal, which stands all the same.
                    Err(_) if replies.iter().any(|reply: &Reply| !reply.is_positive()) => break,
                    Err(error) => return Err(error),
                }
            }
            replies
        } else {
            let mut replies = Vec::new();
            for command in std::iter::once(&mail).chain(&recipients) {
                self.send(command.as_bytes()).await?;
                let reply = self.reply(self.command).await?;
                let refused = !reply.is_positive();
                replies.push(reply);
                if refused {
                    break;
                }
            }
            replies
        };
        if let Some(refusal) = refusal_among(&replies).cloned() {
            // A server that wants the message all the same gets none of it.
            let is_refused_too = !pipelines_data
                || (self.reply(self.command).await).is_ok_and(|reply| reply.code >= 400);
            return Ok(self.refused(refusal, is_refused_too).await);
        }
        if !pipelines_data {
            self.send(DATA.as_bytes()).await?;
        }
        let reply = self.reply(self.command).await?;
        if reply.code == 354 {
            return Ok(Envelope::Accepted);
        }
        Ok(self.refused(reply, true).await)
    }

    /// The refusal stands whatever becomes of the connection.
    /// `in_step`: it waits for a command.
    async fn refused(&mut self, reply: Reply, in_step: bool) -> Envelope {
        let reset = async {
            self.send(b"RSET\r\n").await?;
            self.expect(250).await
        };
        let reusable = in_step && reply.code != 421 && reset.await.is_ok();
        Envelope::Refused { reply, reusable }
    }

    /// Whether nothing has come that nobody asked for.
    pub(in crate::providers) fn is_quiet(&self) -> bool {
        self.received.is_empty()
    }

    /// The message, dots stuffed, and the reply to it: one time-out for both.
    pub(in crate::providers) async fn content(&mut self, message: &Message) -> Content {
        let limit = self.data;
        let started = Instant::now();
        let mut end_is_leaving = false;
        let written = timeout(limit, self.write_content(message, &mut end_is_leaving)).await;
        let error = match written {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(StageError::Broken(error)),
            Err(_) => Some(StageError::TimedOut(limit)),
        };
        if let Some(error) = error {
            return match self.reply(LAST_WORDS).await {
                Ok(reply) if !reply.is_positive() => Content::RefusedEarly(reply),
                _ if end_is_leaving => Content::Unknown(error),
                _ => Content::NotSent(error),
            };
        }
        match self.reply(limit.saturating_sub(started.elapsed())).await {
            Ok(reply) => Content::Replied(reply),
            Err(error) => Content::Unknown(error),
        }
    }

    /// Sets `end_is_leaving` before the first byte of the end of the message may leave.
    async fn write_content(
        &mut self,
        message: &Message,
        end_is_leaving: &mut bool,
    ) -> std::io::Result<()> {
        let mut stuffed = Vec::with_capacity(WRITE_BYTES.min(message.size() + 64));
        let mut at_line_start = true;
        for chunk in message.chunks() {
            at_line_start = stuff_dots(chunk, at_line_start, &mut stuffed);
            if stuffed.len() >= WRITE_BYTES {
                self.stream.write_all(&stuffed).await?;
                stuffed.clear();
            }
        }
        stuffed.extend_from_slice(if at_line_start {
            b".\r\n"
        } else {
            b"\r\n.\r\n"
        });
        *end_is_leaving = true;
        self.stream.write_all(&stuffed).await?;
        self.stream.flush().await
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

/// What a pipelined MAIL and its RCPTs were refused with. Behind a refused MAIL each RCPT is only out
/// of order; among refused recipients a refusal for good outweighs a passing one, since a later
/// attempt would end the same way.
fn refusal_among(replies: &[Reply]) -> Option<&Reply> {
    let is_refusal = |reply: &&Reply| !matches!(reply.code, 250..=252);
    let (mail, recipients) = replies.split_first()?;
    Some(mail)
        .filter(is_refusal)
        .or_else(|| recipients.iter().find(|reply| reply.is_permanent()))
        .or_else(|| recipients.iter().find(is_refusal))
}

/// Nothing was said to the server yet.
fn own_refusal(text: &str) -> Envelope {
    Envelope::Refused {
        reply: Reply {
            code: 550,
            lines: vec![text.to_owned()],
        },
        reusable: true,
    }
}

/// Doubles each dot at the beginning of a line (RFC 5321 §4.5.2); answers whether the next byte
/// begins a line.
fn stuff_dots(bytes: &[u8], mut at_line_start: bool, stuffed: &mut Vec<u8>) -> bool {
    stuffed.reserve(bytes.len() + 16);
    let mut rest = bytes;
    while !rest.is_empty() {
        if at_line_start && rest[0] == b'.' {
            stuffed.push(b'.');
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |position| position + 1);
        stuffed.extend_from_slice(&rest[..end]);
        at_line_start = rest[end - 1] == b'\n';
        rest = &rest[end..];
    }
    at_line_start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_read_in_either_form() {
        for (line, plain, login) in [
            ("AUTH PLAIN LOGIN", true, true),
            ("auth login", false, true),
            ("AUTH=PLAIN", true, false),
            ("AUTH XOAUTH2 PLAIN-CLIENTTOKEN", false, false),
            ("PLAIN LOGIN", false, false),
        ] {
            let reply = Reply {
                code: 250,
                lines: vec!["relay".to_owned(), line.to_owned()],
            };
            let extensions = Extensions::read(&reply);
            assert_eq!(
                (extensions.plain, extensions.login),
                (plain, login),
                "{line}"
            );
        }
    }

    #[test]
    fn the_refusal_that_counts() {
        for (codes, expected) in [
            (vec![250, 250, 251], None),
            (vec![451, 503, 503], Some(451)),
            (vec![421], Some(421)),
            (vec![550, 503], Some(550)),
            (vec![250, 451, 250], Some(451)),
            (vec![250, 451, 550], Some(550)),
            (vec![250, 354], Some(354)),
        ] {
            let replies: Vec<Reply> = codes
                .into_iter()
                .map(|code| Reply {
                    code,
                    lines: Vec::new(),
                })
                .collect();
            assert_eq!(refusal_among(&replies).map(|reply| reply.code), expected);
        }
    }

    #[test]
    fn dots_are_stuffed_at_any_split() {
        let content = b".a\r\nb.\r\n..\r\n.\r\nend";
        let expected = b"..a\r\nb.\r\n...\r\n..\r\nend";
        for split in 0..=content.len() {
            let mut stuffed = Vec::new();
            let at_line_start = stuff_dots(&content[..split], true, &mut stuffed);
            stuff_dots(&content[split..], at_line_start, &mut stuffed);
            assert_eq!(stuffed, expected, "split at {split}");
        }
    }
}
