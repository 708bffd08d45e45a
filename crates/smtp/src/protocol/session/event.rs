//! A session's settings, and the events for its driver.

use std::fmt::{Debug, Formatter};

use crate::protocol::authentication::{Credentials, Mechanism};
use crate::protocol::data::BareNewline;
use mailgate_types::email_address::EmailAddress;

/// A session's offered extensions and limits.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The server's name in the greeting and the EHLO reply.
    pub hostname: String,
    /// Longest command line in octets, CRLF included.
    pub maximum_line: usize,
    /// Largest message, in octets.
    pub maximum_message: usize,
    /// How an LF without a CR in a message is handled.
    pub bare_newline: BareNewline,
    /// Maximum recipients of a message.
    pub maximum_recipients: usize,
    /// Number of commands refused for syntax or order after which the connection closes.
    pub maximum_errors: usize,
    /// Number of refused credentials after which the connection closes.
    pub maximum_authentication_failures: usize,
    /// Mechanisms in the order in which EHLO lists them.
    pub mechanisms: Vec<Mechanism>,
    /// Whether STARTTLS is offered on plain connections.
    pub starttls: bool,
    /// Whether the driver decides on each recipient ([`Event::Recipient`]) before it is accepted.
    pub ask_for_recipients: bool,
}

/// The connection's encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Plain TCP.
    Clear,
    /// TLS.
    Tls,
}

/// The envelope of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The reverse-path as written, which may be any text; empty for `<>`.
    pub sender: String,
    /// The accepted recipients in the order given, at least one.
    pub recipients: Vec<EmailAddress>,
    /// Whether MAIL gave SMTPUTF8.
    pub smtputf8: bool,
    /// Whether MAIL gave BODY=8BITMIME. Content may contain non-ASCII octets without it, since many clients omit it.
    pub body_8bit: bool,
    /// The client's name in EHLO or HELO.
    pub helo: String,
}

/// A piece of a message that is still being received.
pub struct Piece {
    /// The number of its transaction within the session.
    pub transaction: u64,
    /// The octets since the previous piece.
    pub octets: Vec<u8>,
}

/// An event that the driver must handle before it advances the session again.
pub enum Event {
    /// Send the output, drop all input, do the TLS handshake, continue with [`super::Session::start_tls`].
    StartTls,
    /// Check the credentials; answer with [`super::Session::authenticated`] or
    /// [`super::Session::refuse_authentication`].
    Authenticate(Credentials),
    /// Accept or refuse the recipient; answer with [`super::Session::answer_recipient`].
    Recipient(EmailAddress),
    /// Take the message; answer with [`super::Session::answer_message`].
    Message {
        /// Sender and recipients.
        envelope: Envelope,
        /// The content as sent, dot-unstuffed, its last CRLF included, except for what was already taken by
        /// [`super::Session::take_content`].
        content: Vec<u8>,
        /// The transaction of the [`Piece`]s before it.
        transaction: u64,
    },
    /// Send the output and close the connection.
    Close,
}

impl Debug for Event {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StartTls => formatter.write_str("StartTls"),
            Self::Authenticate(credentials) => formatter
                .debug_tuple("Authenticate")
                .field(credentials)
                .finish(),
            Self::Recipient(recipient) => {
                formatter.debug_tuple("Recipient").field(recipient).finish()
            }
            Self::Message {
                envelope, content, ..
            } => formatter
                .debug_struct("Message")
                .field("envelope", envelope)
                .field("octets", &content.len())
                .finish_non_exhaustive(),
            Self::Close => formatter.write_str("Close"),
        }
    }
}
