//! One connection to an IMAP server: TLS, an access token, and the few commands needed for reading. No mailbox is ever
//! opened for writing; at most a message is appended to one.
//!
//! Every command has a timeout, and all of them together a deadline. After any error the connection is unusable and
//! must be dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use super::framing::{Framing, NotAResponse};
use super::response::{self, Condition, Response, Status};
use super::special_use::{Finder, SpecialUse};
use crate::mail::bearer::{Exchange, Login, Mechanism, Unspeakable};
use crate::mail::received::{BOUNCE_BYTES, Received, header_names};
use crate::mail::sent_copy::{COPIES, Found, Sought};
use mailgate_settings::Endpoint;
use mailgate_types::ids::LOG_ID_HEADER;

/// Maximum size of one read.
const READ_BYTES: usize = 16 * 1024;

/// Longest command line that every server takes (RFC 2683 §3.2.1.5).
const COMMAND_LINE: usize = 1_000;

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

/// A mailbox, opened read-only.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// The number of messages in it.
    pub(super) exists: u32,
    pub(super) uid_validity: Option<u32>,
    pub(super) uid_next: Option<u32>,
}

/// The part of a search result that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    /// This many of the oldest ones from a UID on.
    OldestFrom(u32, usize),
    /// This many of the newest ones.
    Newest(usize),
}

/// The headers of a message.
#[derive(Debug)]
pub(super) struct Headers {
    pub(super) received: Received,
    /// It should be fetched whole.
    pub(super) is_read_whole: bool,
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

    /// Presents an access token, with the command (RFC 4959) or when prompted. The server rejects it with a
    /// continuation that explains the error; the final status follows only after a response to it.
    pub(super) async fn authenticate(
        &mut self,
        username: &str,
        access_token: &SecretString,
    ) -> Result<(), ImapError> {
        let longest = if self.can("SASL-IR").await? {
            COMMAND_LINE
        } else {
            0
        };
        let offered = &self.capabilities;
        let mechanism = Mechanism::among(|name| {
            offered
                .iter()
                .any(|it| it.strip_prefix("AUTH=") == Some(name))
        });
        let login = Login {
            username,
            access_token,
            host: &self.server.host,
            port: self.server.port,
        };
        let mut exchange = Exchange::new(mechanism, login)?;
        let command = exchange.command("AUTHENTICATE", longest);
        // The capabilities may change after login.
        self.capabilities.clear();
        let answer = |challenge: &str| {
            let answer = exchange.answer(challenge)?;
            Some(Zeroizing::new(answer.as_bytes().to_vec()))
        };
        self.converse(command.as_bytes(), answer, |_| {}).await
    }

    /// The mailbox for a special use; `None` if none can be identified.
    pub(super) async fn special_mailbox(
        &mut self,
        wanted: &'static SpecialUse,
    ) -> Result<Option<Vec<u8>>, ImapError> {
        let extended = self.can("SPECIAL-USE").await? && self.can("LIST-EXTENDED").await?;
        // Without the extensions a server may still list these attributes (RFC 6154 §2).
        let command: &[u8] = if extended {
            b"LIST \"\" \"*\" RETURN (SPECIAL-USE)"
        } else {
            b"LIST \"\" \"*\""
        };
        let mut finder = Finder::of(wanted);
        self.run(&[command], |response| {
            if let Response::List(listed) = response {
                finder.consider(listed);
            }
        })
        .await?;
        Ok(finder.name())
    }

    /// Opens a mailbox read-only.
    pub(super) async fn examine(&mut self, mailbox: &[u8]) -> Result<Examined, ImapError> {
        let name = quoted(mailbox).ok_or(ImapError::Unspeakable)?;
        let command = format!("EXAMINE {name}");
        let mut examined = Examined::default();
        self.run(&[command.as_bytes()], |response| match response {
            Response::Exists(count) => examined.exists = count,
            Response::Untagged(status) => {
                examined.uid_validity = status.number("UIDVALIDITY").or(examined.uid_validity);
                examined.uid_next = status.number("UIDNEXT").or(examined.uid_next);
            }
            _ => {}
        })
        .await?;
        Ok(examined)
    }

    /// Looks for a message in the opened mailbox.
    pub(super) async fn find(&mut self, sought: Sought<'_>) -> Result<Found, ImapError> {
        let copies = self.with_message_id(sought.message_id).await?;
        if copies.is_empty() {
            return Ok(Found::Nothing);
        }
        let mut found = Found::OtherCopies;
        self.fetch_fields(&copies, &[LOG_ID_HEADER], |_, headers| {
            if sought.is_headed_by(&headers) {
                found = Found::Message;
            }
        })
        .await?;
        Ok(found)
    }

    /// The newest messages with this Message-ID.
    async fn with_message_id(&mut self, message_id: &str) -> Result<Vec<u32>, ImapError> {
        // An empty one would match every message.
        if message_id.len() < "<a>".len() || message_id.chars().any(char::is_control) {
            return Err(ImapError::Unspeakable);
        }
        let keep = Keep::Newest(COPIES);
        if let Some(id) = quoted(message_id.as_bytes()) {
            let criteria = format!("HEADER Message-ID {id}");
            self.search(&[&criteria], keep).await
        } else {
            let length = message_id.len();
            let criteria = format!("CHARSET UTF-8 HEADER Message-ID {{{length}}}");
            self.search(&[&criteria, message_id], keep).await
        }
    }

    /// The UIDs of the messages that match `criteria`, oldest first; between two of its parts, waits for the server's
    /// continuation.
    pub(super) async fn search(
        &mut self,
        criteria: &[&str],
        keep: Keep,
    ) -> Result<Vec<u32>, ImapError> {
        let mut parts: Vec<Vec<u8>> = criteria
            .iter()
            .map(|part| part.as_bytes().to_vec())
            .collect();
        if let Some(first) = parts.first_mut() {
            first.splice(..0, *b"UID SEARCH ");
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut kept = BTreeSet::new();
        self.run(&parts, |response| {
            let Response::Search(uids) = response else {
                return;
            };
            for uid in uids {
                match keep {
                    Keep::OldestFrom(first, count) => {
                        if uid >= first && kept.insert(uid) && kept.len() > count {
                            kept.pop_last();
                        }
                    }
                    Keep::Newest(count) => {
                        if kept.insert(uid) && kept.len() > count {
                            kept.pop_first();
                        }
                    }
                }
            }
        })
        .await?;
        Ok(kept.into_iter().collect())
    }

    /// The headers of each of these messages. Messages deleted meanwhile are left out.
    pub(super) async fn headers(
        &mut self,
        uids: &[u32],
    ) -> Result<BTreeMap<u32, Headers>, ImapError> {
        let mut messages = BTreeMap::new();
        let names: Vec<&str> = header_names().collect();
        self.fetch_fields(uids, &names, |uid, headers| {
            let received = Received::parse(&headers);
            let is_read_whole = received.is_read_whole(&headers);
            let headers = Headers {
                received,
                is_read_whole,
            };
            messages.insert(uid, headers);
        })
        .await?;
        Ok(messages)
    }

    /// Some header fields of each of these messages.
    async fn fetch_fields(
        &mut self,
        uids: &[u32],
        names: &[&str],
        mut each: impl FnMut(u32, Vec<u8>),
    ) -> Result<(), ImapError> {
        let set: Vec<String> = uids.iter().map(u32::to_string).collect();
        let command = format!(
            "UID FETCH {} (UID BODY.PEEK[HEADER.FIELDS ({})])",
            set.join(","),
            names.join(" ")
        );
        self.run(&[command.as_bytes()], |response| {
            if let Response::Fetch(fetched) = response
                && let (Some(uid), Some(mut headers)) = (fetched.uid, fetched.section)
                && uids.contains(&uid)
            {
                // A truncated header block has no end.
                headers.extend_from_slice(b"\r\n\r\n");
                each(uid, headers);
            }
        })
        .await
    }

    /// The beginning of a message; `None` if it was deleted meanwhile, or the server can't read it.
    pub(super) async fn beginning(&mut self, uid: u32) -> Result<Option<Vec<u8>>, ImapError> {
        let command = format!("UID FETCH {uid} (UID BODY.PEEK[]<0.{BOUNCE_BYTES}>)");
        let mut message = None;
        let parts = [command.as_bytes()];
        let fetched = self.run(&parts, |response| {
            if let Response::Fetch(fetched) = response
                && fetched.uid == Some(uid)
            {
                message = fetched.section;
            }
        });
        match fetched.await {
            // A damaged message stays damaged, and must not block later ones.
            Err(ImapError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(message),
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

    /// Runs one command, waiting for a continuation before each further part, and passes on the responses until it
    /// completes.
    async fn run(&mut self, parts: &[&[u8]], each: impl FnMut(Response)) -> Result<(), ImapError> {
        let (first, further) = parts.split_first().ok_or(ImapError::Unspeakable)?;
        let mut further = further.iter();
        let answer = |_: &str| further.next().map(|part| Zeroizing::new(part.to_vec()));
        self.converse(first, answer, each).await
    }

    /// Sends a command, answers each of the server's continuations, and passes on the responses until it completes.
    async fn converse(
        &mut self,
        command: &[u8],
        answer: impl FnMut(&str) -> Option<Zeroizing<Vec<u8>>>,
        each: impl FnMut(Response),
    ) -> Result<(), ImapError> {
        let end = self.end_of_command();
        timeout_at(end, self.exchange(command, answer, each))
            .await
            .map_err(|_| ImapError::TimedOut)?
    }

    async fn exchange(
        &mut self,
        command: &[u8],
        mut answer: impl FnMut(&str) -> Option<Zeroizing<Vec<u8>>>,
        mut each: impl FnMut(Response),
    ) -> Result<(), ImapError> {
        let tag = self.begin(command).await?;
        loop {
            match self.response().await? {
                Response::Continue(text) => {
                    let answer = answer(&text).ok_or(NotAResponse)?;
                    self.send("", &answer).await?;
                }
                Response::Tagged(its, status) if its == tag => {
                    return match status.condition {
                        Condition::Ok => Ok(()),
                        _ => Err(ImapError::Refused(status)),
                    };
                }
                Response::Tagged(..) => return Err(NotAResponse.into()),
                response => each(response),
            }
        }
    }

    /// Sends a command, or the beginning of one; returns its tag.
    pub(super) async fn begin(&mut self, command: &[u8]) -> Result<String, ImapError> {
        self.tag += 1;
        let tag = format!("A{}", self.tag);
        self.send(&format!("{tag} "), command).await?;
        Ok(tag)
    }

    async fn send(&mut self, tag: &str, part: &[u8]) -> Result<(), ImapError> {
        let line = Zeroizing::new([tag.as_bytes(), part, b"\r\n"].concat());
        self.stream.write_all(&line).await?;
        Ok(self.stream.flush().await?)
    }

    pub(super) async fn response(&mut self) -> Result<Response, ImapError> {
        loop {
            if let Some(frame) = self.framing.take(&mut self.received)? {
                let response = response::read(&frame)?;
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
