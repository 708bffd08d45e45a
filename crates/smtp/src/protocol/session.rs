//! One SMTP session: which commands are allowed when, and the replies to them. It does no I/O: the driver moves bytes,
//! answers events and enforces timeouts.
//!
//! Its parts: [`auth`] (AUTH, and how many failures end the session), [`order`] of the commands, the [`transaction`] of
//! one message, and its [`content`].

mod auth;
mod content;
mod event;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod order;
mod transaction;

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use secrecy::ExposeSecret;
use zeroize::Zeroize;

pub use self::event::{Encryption, Envelope, Event, Piece, SessionSettings};
use self::transaction::{Chunks, Transaction};
use super::authentication::Exchange;
pub use super::authentication::{Credentials, Mechanism};
use super::command::{Command, Verb};
use super::data::{DataReceiver, Progress};
use super::line::{Line, LineReader};
use super::reply::Reply;
use mailgate_types::email_address::EmailAddress;

/// Longest line that may carry a token, in octets (RFC 4954 §4).
const TOKEN_LINE: usize = 12_288;

/// The beginning of a command whose line may have that length.
const TOKEN_COMMAND: &[u8] = b"AUTH XOAUTH2 ";

/// A session with one client, starting with the greeting or after the TLS handshake.
pub struct Session {
    settings: Arc<SessionSettings>,
    encryption: Encryption,
    lines: LineReader,
    state: State,
    client: Option<Client>,
    authenticated: bool,
    transaction: Option<Transaction>,
    /// The number of transactions so far, which is also the number of the current one.
    transactions: u64,
    content_octets: u64,
    errors: usize,
    authentication_failures: usize,
}

struct Client {
    name: String,
    /// The client sent EHLO rather than HELO.
    extended: bool,
}

/// What the session is waiting for.
enum State {
    Command,
    Response(Exchange),
    /// The line that answers XOAUTH2's error response, before the refusal itself.
    BearerRefused {
        reply: Reply,
        close: bool,
    },
    Data(DataReceiver),
    /// The rest of a chunk; its receiver is the transaction's.
    Chunk {
        remaining: u64,
        last: bool,
    },
    /// The octets of a refused BDAT (RFC 3030 §2), up to the patience limit.
    RefusedChunk {
        remaining: u64,
        patience: u64,
        refusal: Refusal,
    },
    /// The driver's TLS handshake.
    AwaitTls,
    AwaitAuthentication {
        bearer: bool,
    },
    AwaitRecipient(EmailAddress),
    AwaitMessage,
    Closed,
}

/// A 4yz or 5yz reply by the session itself.
struct Refusal {
    reply: Reply,
    /// Whether it counts towards [`SessionSettings::maximum_errors`].
    counted: bool,
}

impl From<Reply> for Refusal {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            counted: true,
        }
    }
}

/// The result of a command, with an event for the driver if any.
type Outcome = Result<Option<Event>, Refusal>;

impl Session {
    /// A session at its start.
    #[must_use]
    pub fn new(settings: Arc<SessionSettings>, encryption: Encryption) -> Self {
        Self {
            settings,
            encryption,
            lines: LineReader::new(),
            state: State::Command,
            client: None,
            authenticated: false,
            transaction: None,
            transactions: 0,
            content_octets: 0,
            errors: 0,
            authentication_failures: 0,
        }
    }

    /// The greeting. It isn't repeated after STARTTLS.
    #[must_use]
    pub fn greeting(&self) -> Reply {
        Reply::new(220, "", &format!("{} ESMTP ready", self.settings.hostname))
    }

    /// Whether a message is being received, possibly between two of its chunks: its timeouts differ from those of
    /// commands (RFC 5321 §4.5.3.2), and its received octets count.
    #[must_use]
    pub fn is_receiving_content(&self) -> bool {
        matches!(
            self.state,
            State::Data(_) | State::Chunk { .. } | State::RefusedChunk { .. }
        ) || matches!(
            self.transaction,
            Some(Transaction {
                chunks: Chunks::Some(_),
                ..
            })
        )
    }

    /// Octets of message content received so far, including refused messages; commands don't count.
    #[must_use]
    pub fn content_octets(&self) -> u64 {
        self.content_octets
    }

    /// The transaction of a message being received, and the number of its octets kept here.
    #[must_use]
    pub fn kept_content(&self) -> Option<(u64, usize)> {
        let octets = match (&self.state, &self.transaction) {
            (State::Data(receiver), _) => receiver.kept(),
            (
                _,
                Some(Transaction {
                    chunks: Chunks::Some(receiver),
                    ..
                }),
            ) => receiver.kept(),
            _ => return None,
        };
        Some((self.transactions, octets))
    }

    /// The content received since the last call, once it has at least `at_least` octets: for a driver that takes large
    /// messages in pieces. The rest is in the [`Event::Message`] of the same transaction; without that event the
    /// message was refused.
    pub fn take_content(&mut self, at_least: usize) -> Option<Piece> {
        let octets = match (&mut self.state, &mut self.transaction) {
            (State::Data(receiver), _) => receiver.take(at_least),
            // The chunk may have ended, and the message continues with the next one.
            (
                _,
                Some(Transaction {
                    chunks: Chunks::Some(receiver),
                    ..
                }),
            ) => receiver.take(at_least),
            _ => None,
        };
        octets.map(|octets| Piece {
            transaction: self.transactions,
            octets,
        })
    }

    /// Whether the client has authenticated.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Consumes `input` and appends replies to `output`, up to the first event; `None` if more input is needed. It
    /// consumes nothing until an event is answered, and after [`Event::StartTls`] and [`Event::Close`] it drops what
    /// the client has sent ahead.
    pub fn advance(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Option<Event> {
        loop {
            let event = match &mut self.state {
                State::Command => {
                    let limit = self.command_limit(input);
                    let line = self.lines.next(input, limit)?;
                    self.command_line(line, output)
                }
                State::Response(exchange) => {
                    let limit = if exchange.takes_tokens() {
                        token_line(&self.settings)
                    } else {
                        self.settings.maximum_line
                    };
                    let line = self.lines.next(input, limit)?;
                    self.response_line(line, output)
                }
                State::BearerRefused { .. } => {
                    self.lines.next(input, token_line(&self.settings))?;
                    self.bearer_refused(output)
                }
                State::Data(receiver) => {
                    let before = input.len();
                    let progress = receiver.receive(input);
                    self.content_octets += (before - input.len()) as u64;
                    match progress {
                        Progress::More => return None,
                        Progress::End(content) => self.content(content, output),
                        Progress::Endless => Some(self.endless(output)),
                    }
                }
                State::Chunk { remaining, last } => {
                    let (finished, last) = (*remaining == 0, *last);
                    if finished {
                        self.chunk_end(last, output)
                    } else if input.is_empty() {
                        return None;
                    } else if self.receive_chunk(input) {
                        None
                    } else {
                        Some(self.endless(output))
                    }
                }
                State::RefusedChunk {
                    remaining,
                    patience,
                    ..
                } => {
                    let consumed = (*remaining).min(*patience).min(input.len() as u64);
                    input.advance(usize::try_from(consumed).unwrap_or(input.len()));
                    *remaining -= consumed;
                    *patience -= consumed;
                    self.content_octets += consumed;
                    match (*remaining, *patience) {
                        (0, _) => self.refused_chunk_end(output),
                        (_, 0) => Some(self.endless(output)),
                        _ => return None,
                    }
                }
                State::AwaitTls
                | State::AwaitAuthentication { .. }
                | State::AwaitRecipient(_)
                | State::AwaitMessage => {
                    return None;
                }
                State::Closed => Some(Event::Close),
            };
            if let Some(event) = event {
                if matches!(event, Event::StartTls | Event::Close) {
                    input.clear();
                }
                return Some(event);
            }
        }
    }

    /// The session after the TLS handshake: it forgets the plaintext session (RFC 3207 §4.2). The driver drops its
    /// buffered input.
    #[must_use]
    pub fn start_tls(self) -> Self {
        Self::new(self.settings, Encryption::Tls)
    }

    /// Only a line that begins an XOAUTH2 exchange may be long. The normal limit can't be reached before enough has
    /// arrived to tell.
    fn command_limit(&self, input: &BytesMut) -> usize {
        let token = self.encryption == Encryption::Tls
            && !self.authenticated
            && self.settings.mechanisms.contains(&Mechanism::Xoauth2)
            && input
                .get(..TOKEN_COMMAND.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(TOKEN_COMMAND));
        if token {
            token_line(&self.settings)
        } else {
            self.settings.maximum_line
        }
    }

    fn command_line(&mut self, line: Line, output: &mut Vec<u8>) -> Option<Event> {
        let outcome = match line {
            Line::Whole(mut line) => {
                let outcome = self.command(&line, output);
                // It may have been AUTH with a password.
                line.as_mut().zeroize();
                outcome
            }
            Line::BareLineEnd => Err(Reply::new(
                500,
                "5.5.2",
                "Bare CR or LF in command; end lines with CRLF",
            )
            .into()),
            Line::TooLong => Err(Reply::new(500, "5.5.2", "Line too long").into()),
        };
        self.conclude(outcome, output)
    }

    fn conclude(&mut self, outcome: Outcome, output: &mut Vec<u8>) -> Option<Event> {
        match outcome {
            Ok(event) => event,
            Err(refusal) => self.refuse(&refusal, output),
        }
    }

    fn refuse(&mut self, refusal: &Refusal, output: &mut Vec<u8>) -> Option<Event> {
        refusal.reply.write_to(output);
        if refusal.counted {
            self.errors += 1;
            if self.errors >= self.settings.maximum_errors {
                Reply::new(421, "4.7.0", "Too many errors, closing the connection")
                    .write_to(output);
                return Some(self.close());
            }
        }
        None
    }

    fn close(&mut self) -> Event {
        self.state = State::Closed;
        self.transaction = None;
        Event::Close
    }

    fn command(&mut self, line: &[u8], output: &mut Vec<u8>) -> Outcome {
        let (verb, arguments) = Verb::split(line)?;
        if verb == Verb::Bdat {
            return Ok(self.bdat(arguments, output));
        }
        self.check_order(verb)?;
        let command = Command::from_parts(verb, arguments).map_err(|reply| {
            if verb == Verb::Rcpt {
                self.recipient_refused();
            }
            // Some recipients of a list may be wrong; the others still get the message.
            let is_address = verb == Verb::Rcpt && reply.enhanced() == Some((5, 1, 3));
            Refusal {
                reply,
                counted: !is_address,
            }
        })?;
        match command {
            Command::Ehlo(name) => self.ehlo(name, output),
            Command::Helo(name) => {
                self.greet(name, false);
                Reply::new(250, "", &self.settings.hostname).write_to(output);
            }
            Command::StartTls => {
                self.state = State::AwaitTls;
                Reply::new(220, "2.0.0", "Ready to start TLS").write_to(output);
                return Ok(Some(Event::StartTls));
            }
            Command::Auth {
                mechanism,
                initial_response,
            } => {
                let response = initial_response.as_ref().map(ExposeSecret::expose_secret);
                return self.auth(&mechanism, response, output);
            }
            Command::Mail {
                reverse_path,
                parameters,
            } => self.mail(reverse_path, parameters, output)?,
            Command::Rcpt { forward_path } => return self.rcpt(forward_path, output),
            Command::Data => {
                let declared = self
                    .transaction
                    .as_ref()
                    .and_then(|transaction| transaction.parameters.size);
                self.state = State::Data(DataReceiver::new(
                    self.settings.maximum_message,
                    declared,
                    self.settings.bare_newline,
                ));
                Reply::new(354, "", "Send the message; end it with <CRLF>.<CRLF>").write_to(output);
            }
            // Handled above, since its octets follow regardless of the reply.
            Command::Bdat { .. } => {}
            Command::Rset => {
                self.transaction = None;
                Reply::new(250, "2.0.0", "OK").write_to(output);
            }
            Command::Noop => Reply::new(250, "2.0.0", "OK").write_to(output),
            Command::Vrfy => {
                Reply::new(252, "2.5.0", "Not verified; send the message and see").write_to(output);
            }
            Command::Expn => return Err(Reply::new(502, "5.5.1", "EXPN is not available").into()),
            Command::Help => Reply::new(
                214,
                "2.0.0",
                "EHLO STARTTLS AUTH MAIL RCPT DATA BDAT RSET NOOP QUIT",
            )
            .write_to(output),
            Command::Quit => {
                Reply::new(221, "2.0.0", "Goodbye").write_to(output);
                return Ok(Some(self.close()));
            }
        }
        Ok(None)
    }

    fn greet(&mut self, name: String, extended: bool) {
        self.client = Some(Client { name, extended });
        // Like RSET (RFC 5321 §4.1.4).
        self.transaction = None;
    }

    fn ehlo(&mut self, name: String, output: &mut Vec<u8>) {
        self.greet(name, true);
        let mut lines = vec![self.settings.hostname.clone()];
        lines.extend(
            ["PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"].map(str::to_owned),
        );
        lines.push(format!("SIZE {}", self.settings.maximum_message));
        lines.push("CHUNKING".to_owned());
        match self.encryption {
            Encryption::Clear if self.settings.starttls => lines.push("STARTTLS".to_owned()),
            Encryption::Tls if !self.authenticated && !self.settings.mechanisms.is_empty() => {
                let names: Vec<&str> = self
                    .settings
                    .mechanisms
                    .iter()
                    .map(|mechanism| mechanism.name())
                    .collect();
                lines.push(format!("AUTH {}", names.join(" ")));
            }
            _ => {}
        }
        Reply::with_lines(250, "", &lines).write_to(output);
    }
}

fn token_line(settings: &SessionSettings) -> usize {
    settings.maximum_line.max(TOKEN_LINE)
}

fn out_of_order(text: &str) -> Refusal {
    Reply::new(503, "5.5.1", text).into()
}

fn too_large() -> Reply {
    Reply::new(552, "5.3.4", "Message exceeds the size limit")
}

#[cfg(test)]
mod tests;
