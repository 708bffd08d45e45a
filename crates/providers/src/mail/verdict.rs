//! The outcome of a submission.

use std::fmt::{Display, Formatter};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use mailgate_types::one_line::one_line;

/// Longest failure text that is stored, logged and reported, in bytes.
const LONGEST: usize = 2_000;

/// A failure in the provider's own words, or in ours if it gave none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The SMTP reply code, if there was a reply.
    pub code: Option<u16>,
    /// One line, without the code.
    pub text: String,
}

impl Failure {
    /// A failure with a text of any length, truncated to what is stored.
    #[must_use]
    pub fn new(code: Option<u16>, text: &str) -> Self {
        Self {
            code,
            text: one_line(text, LONGEST),
        }
    }

    /// A failure without a reply.
    #[must_use]
    pub fn own(text: impl AsRef<str>) -> Self {
        Self::new(None, text.as_ref())
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => write!(formatter, "{code} {}", self.text),
            None => formatter.write_str(&self.text),
        }
    }
}

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The provider has the message.
    Sent {
        /// The Message-ID that the provider assigned instead of the message's own, angle brackets included.
        message_id: Option<String>,
    },
    /// A temporary failure; the provider doesn't have the message.
    Temporary {
        /// Why.
        failure: Failure,
        /// The delay that the provider asked for or is known to need.
        retry_after: Option<Duration>,
    },
    /// A permanent failure; the provider doesn't have the message.
    Permanent(Failure),
    /// Permanent: the mailbox may not send as the message's sender; the provider doesn't have the message.
    SenderRefused(Failure),
    /// The connection broke after the message was sent: the provider may have it.
    Unknown(Failure),
    /// The access token was rejected; the provider doesn't have the message.
    TokenRefused(Failure),
}

impl Verdict {
    /// The provider has the message, unchanged.
    #[must_use]
    pub fn sent() -> Self {
        Self::Sent { message_id: None }
    }

    /// A temporary failure without a given delay.
    #[must_use]
    pub fn temporary(failure: Failure) -> Self {
        Self::Temporary {
            failure,
            retry_after: None,
        }
    }
}
