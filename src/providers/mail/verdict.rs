//! What came of a submission.

use std::fmt::{Display, Formatter};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use mailgate_types::one_line::one_line;

/// Bytes of a failure's words that are stored, logged and told.
const LONGEST: usize = 2_000;

/// A failure in the provider's own words, or ours where it said none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The SMTP reply code, where there was a reply.
    pub code: Option<u16>,
    /// One line, without the code.
    pub text: String,
}

impl Failure {
    /// A failure in words of any length, which are cut to what is stored of them.
    #[must_use]
    pub fn new(code: Option<u16>, text: &str) -> Self {
        Self {
            code,
            text: one_line(text, LONGEST),
        }
    }

    /// A failure that no reply tells of.
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

/// What came of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The provider has the message.
    Sent {
        /// The Message-ID that the provider gave it instead of its own, angle brackets included.
        message_id: Option<String>,
    },
    /// Not now; the provider has not got it.
    Temporary {
        /// Why.
        failure: Failure,
        /// The provider named a time to wait, or is known to mean one.
        retry_after: Option<Duration>,
    },
    /// Never; the provider has not got it.
    Permanent(Failure),
    /// Never, since the mailbox may not send as the message's sender; the provider has not got it.
    SenderRefused(Failure),
    /// The message was out when the connection broke: the provider may have it.
    Unknown(Failure),
    /// The access token doesn't open the mailbox; the provider has not got the message.
    TokenRefused(Failure),
}

impl Verdict {
    /// The provider has the message as it is.
    #[must_use]
    pub fn sent() -> Self {
        Self::Sent { message_id: None }
    }

    /// A passing failure with no time of its own.
    #[must_use]
    pub fn temporary(failure: Failure) -> Self {
        Self::Temporary {
            failure,
            retry_after: None,
        }
    }
}
