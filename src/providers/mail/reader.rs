//! What every way of reading a mailbox has: whether a message is among the sent ones, and what has
//! come in.

use std::fmt::Debug;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use super::received::Received;
use super::transport::MailboxAccess;

/// Why a mailbox can't be read at the moment.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The access token doesn't open it.
    #[error("the access token is refused: {0}")]
    TokenRefused(String),
    /// What was granted doesn't let us read it, or the provider has switched it off.
    #[error("the mailbox may not be read: {0}")]
    Forbidden(String),
    /// The provider can't be asked now.
    #[error("the mailbox can't be read: {text}")]
    Unavailable {
        /// Why.
        text: String,
        /// The provider named a time to wait.
        retry_after: Option<Duration>,
    },
}

impl ReadError {
    /// The provider can't be asked now, and names no time.
    #[must_use]
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::Unavailable {
            text: text.into(),
            retry_after: None,
        }
    }
}

/// What has come into a mailbox.
#[derive(Debug, Clone)]
pub struct NewMail {
    /// The headers of each message, oldest first.
    pub messages: Vec<Received>,
    /// Where the next look begins.
    pub cursor: String,
    /// There is more already.
    pub more: bool,
}

/// A way of reading mailboxes of a provider.
pub trait MailReader: Debug + Send + Sync {
    /// Whether what was granted lets it read.
    fn may_read(&self, scopes: &[String]) -> bool;

    /// Whether a message that isn't among the sent ones was not sent: the provider keeps a copy of each.
    fn keeps_sent_mail(&self) -> bool;

    /// Whether a message with this Message-ID (angle brackets included) is among the sent ones.
    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        message_id: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReadError>>;

    /// What has come into the inbox since the look that gave `cursor`. Without one, and where it is no
    /// longer good: what has come since `since`. A bounded number at once.
    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>>;
}
