//! What a session is told beforehand, and what it tells its driver.

use std::fmt::{Debug, Formatter};

use crate::protocol::authentication::{Credentials, Mechanism};
use crate::protocol::data::BareNewline;
use mailgate_types::email_address::EmailAddress;

/// What a session offers and how far it goes.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The server's name in the greeting and the answer to EHLO.
    pub hostname: String,
    /// Octets of a command line, CRLF included.
    pub maximum_line: usize,
    /// Octets of a message.
    pub maximum_message: usize,
    /// What becomes of an LF without its CR in a message.
    pub bare_newline: BareNewline,
    /// Recipients of a message.
    pub maximum_recipients: usize,
    /// Commands refused for syntax or order, after which the connection closes.
    pub maximum_errors: usize,
    /// Refused credentials after which the connection closes.
    pub maximum_authentication_failures: usize,
    /// Mechanisms in the order in which EHLO lists them.
    pub mechanisms: Vec<Mechanism>,
    /// Whether STARTTLS is offered in clear.
    pub starttls: bool,
    /// Whether each recipient is put to the driver ([`Event::Recipient`]) before it is accepted.
    pub ask_for_recipients: bool,
}

/// What the connection runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Plain TCP.
    Clear,
    /// TLS.
    Tls,
}

/// What surrounds a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The reverse-path; `None` is `<>`.
    pub sender: Option<EmailAddress>,
    /// The accepted recipients in the order given, at least one.
    pub recipients: Vec<EmailAddress>,
    /// Whether MAIL gave SMTPUTF8.
    pub smtputf8: bool,
    /// Whether MAIL gave BODY=8BITMIME. Content may hold octets beyond ASCII without it: many
    /// clients leave it out, and refusing what they send helps nobody.
    pub body_8bit: bool,
    /// The client's name for itself.
    pub helo: String,
}

/// Content of a message that is still coming.
pub struct Piece {
    /// The number of its transaction within the session.
    pub transaction: u64,
    /// The octets since the piece before.
    pub octets: Vec<u8>,
}

/// What the driver has to act on before it advances the session again.
pub enum Event {
    /// Send the output, drop every byte of input, do the TLS handshake, go on with
    /// [`super::Session::start_tls`].
    StartTls,
    /// Check them; [`super::Session::authenticated`] or [`super::Session::refuse_authentication`].
    Authenticate(Credentials),
    /// Decide; [`super::Session::answer_recipient`].
    Recipient(EmailAddress),
    /// Take it; [`super::Session::answer_message`].
    Message {
        /// Sender and recipients.
        envelope: Envelope,
        /// The content as sent, dots unstuffed, its last CRLF included, but for what was taken
        /// before by [`super::Session::take_content`].
        content: Vec<u8>,
        /// The transaction that [`Piece`]s before it were of.
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
