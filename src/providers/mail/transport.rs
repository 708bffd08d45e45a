//! What every way of sending has: a mailbox opened by an access token, an envelope, and a verdict.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use secrecy::SecretString;

use super::verdict::Verdict;
use mailgate_types::ids::CredentialId;
use mailgate_types::message::Message;

/// A mailbox, opened by an access token.
#[derive(Debug, Clone)]
pub struct MailboxAccess {
    /// The mailbox.
    pub credential: CredentialId,
    /// Its address: log-in name and envelope sender.
    pub address: String,
    /// Which of the mailbox's access tokens this is.
    pub generation: i64,
    /// The access token.
    pub access_token: SecretString,
    /// What its user has granted.
    pub scopes: Arc<[String]>,
}

/// Whom a message goes to.
#[derive(Debug, Clone)]
pub struct Recipients {
    /// Their addresses.
    pub addresses: Vec<String>,
    /// An address or a header isn't ASCII.
    pub smtputf8: bool,
}

/// Asked right before the last of a message leaves: from then on the provider may have it.
pub trait Leave: Debug + Send + Sync {
    /// Why it must not leave, where it must not.
    fn ask(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// A message that nobody else may be sending.
#[derive(Debug, Clone, Copy)]
pub struct Unasked;

impl Leave for Unasked {
    fn ask(&self) -> BoxFuture<'_, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// A way of sending through a provider.
pub trait MailTransport: Debug + Send + Sync {
    /// Submits a message once. Waits for a place where the mailbox has as many submissions under way
    /// as it may have. Each stage of it is bounded. `leave` is asked before the provider may have the message;
    /// where it says no, the verdict is a temporary failure.
    fn submit<'a>(
        &'a self,
        account: &'a MailboxAccess,
        recipients: &'a Recipients,
        message: &'a Message,
        leave: &'a dyn Leave,
    ) -> BoxFuture<'a, Verdict>;

    /// Whether the Message-ID is known under which a message goes out: it stays what it was, or what was granted
    /// lets us read what the provider made of it.
    fn tells_message_id(&self, scopes: &[String]) -> bool;

    /// So many gateways share from now on what each mailbox may have under way.
    fn share_among(&self, _living: usize) {}

    /// Closes connections that nobody has used for a while.
    fn drop_idle_connections(&self) {}
}
