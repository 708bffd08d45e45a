//! The responses of a server (RFC 9051 §7) that are needed here.

pub(super) mod parse;
mod reader;

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    /// The server expects more of the command; during authentication, a challenge.
    Continue(String),
    /// The end of the command with this tag.
    Tagged(String, Status),
    /// A status without a command: the greeting, a warning, or BYE.
    Untagged(Status),
    /// The capabilities of the server, in upper case.
    Capability(Vec<String>),
    /// A mailbox.
    List(Listed),
    /// The messages found.
    Search(Vec<u32>),
    /// The number of messages in the mailbox.
    Exists(u32),
    /// The data of one message.
    Fetch(Fetched),
    /// Anything else.
    Other,
}

/// The first word of a status response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Ok,
    No,
    Bad,
    Preauth,
    Bye,
}

/// A status response (RFC 9051 §7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) condition: Condition,
    /// The response code with its arguments, in upper case; empty if there is none.
    pub(super) code: Vec<String>,
    /// The human-readable text.
    pub(super) text: String,
}

impl Status {
    /// The name of the response code.
    pub(super) fn code_name(&self) -> &str {
        self.code.first().map_or("", String::as_str)
    }

    /// The number that the response code `name` carries.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        match self.code.as_slice() {
            [code, number] if code == name => number.parse().ok(),
            _ => None,
        }
    }
}

/// A mailbox in the response to LIST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Its attributes, in lower case.
    pub(super) attributes: Vec<String>,
    pub(super) name: Vec<u8>,
}

/// A message's data from FETCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fetched {
    pub(super) uid: Option<u32>,
    /// The requested section.
    pub(super) section: Option<Vec<u8>>,
}
