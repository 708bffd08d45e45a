//! The common interface of mailbox readers: whether a message is among the sent ones, and what mail is new.

use std::fmt::Debug;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::received::Received;
use super::sent_copy::{Found, Sought};
use super::transport::MailboxAccess;
use mailgate_types::ids::LogId;
use mailgate_types::message::Message;

/// Time limit for the required reads of a check: lists, and the first new message.
pub const LONGEST: Duration = Duration::from_secs(280);

/// Longest wait for one HTTP response, whatever the settings allow: up to seven come before the first message is read.
pub const RESPONSE: Duration = Duration::from_secs(LONGEST.as_secs() / 7);

/// Why a mailbox can't be read at the moment.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The access token is rejected.
    #[error("the access token is refused: {0}")]
    TokenRefused(String),
    /// The login is refused without a reason, perhaps because of the token.
    #[error("the login is refused: {0}")]
    Unexplained(String),
    /// The granted scopes don't allow it, or the provider has disabled it.
    #[error("the mailbox may not be read: {0}")]
    Forbidden(String),
    /// The provider is unavailable.
    #[error("the mailbox can't be read: {text}")]
    Unavailable {
        /// Why.
        text: String,
        /// The delay that the provider asked for.
        retry_after: Option<Duration>,
    },
}

impl ReadError {
    /// The provider is unavailable, without a given delay.
    #[must_use]
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::Unavailable {
            text: text.into(),
            retry_after: None,
        }
    }
}

/// New mail in a mailbox.
#[derive(Debug, Clone)]
pub struct NewMail {
    /// The headers of each message, oldest first.
    pub messages: Vec<Received>,
    /// The cursor of the next check.
    pub cursor: String,
    /// There is more to read.
    pub more: bool,
}

/// The result of filing a copy in the sent mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filed {
    /// It is there now.
    Now,
    /// It was there already.
    Before,
}

/// Reads the mailboxes of a provider.
pub trait MailReader: Debug + Send + Sync {
    /// Whether the granted scopes allow reading.
    fn may_read(&self, scopes: &[String]) -> bool;

    /// Whether a message that isn't among the sent ones was not sent, because the provider keeps a copy of each.
    fn keeps_sent_mail(&self) -> bool;

    /// Whether a message is among the sent ones.
    fn find_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        sought: Sought<'a>,
    ) -> BoxFuture<'a, Result<Found, ReadError>>;

    /// Whether sent messages are to be filed: the provider keeps none.
    fn files_sent(&self) -> bool {
        false
    }

    /// Puts a copy of the message with this log id, sent about `at`, among the sent ones, unless it is there.
    fn file_sent<'a>(
        &'a self,
        account: &'a MailboxAccess,
        id: LogId,
        message: &'a Message,
        at: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Filed, ReadError>> {
        let _ = (account, id, message, at);
        let no = ReadError::Forbidden("nothing is filed at this provider".to_owned());
        std::future::ready(Err(no)).boxed()
    }

    /// New mail in the inbox since the check that returned `cursor`. Without one, or if it is no longer valid: since
    /// `since`. Returns a bounded number of messages.
    ///
    /// From `until` on, no further message is read, but the first one always is: every check gets further. The same
    /// goes for an error, which is returned only if nothing was read before it. The cursor is that of what was read.
    fn new_mail<'a>(
        &'a self,
        account: &'a MailboxAccess,
        cursor: Option<&'a str>,
        since: DateTime<Utc>,
        until: Instant,
    ) -> BoxFuture<'a, Result<NewMail, ReadError>>;
}
