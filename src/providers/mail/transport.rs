//! What every way of sending has: a mailbox opened by an access token, an envelope, and a verdict.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::SecretString;

use super::verdict::Verdict;
use crate::types::ids::CredentialId;
use crate::types::message::Message;

/// A mailbox, opened by an access token.
#[derive(Debug, Clone)]
pub struct Account {
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

/// A way of sending through a provider.
pub trait MailTransport: Debug + Send + Sync {
    /// Submits a message once. Waits for a place where the mailbox has as many submissions under way
    /// as it may have. Each stage of it is bounded.
    fn submit<'a>(
        &'a self,
        account: &'a Account,
        recipients: &'a Recipients,
        message: &'a Message,
    ) -> BoxFuture<'a, Verdict>;

    /// Whether the Message-ID is known under which a message goes out: it stays what it was, or what was granted
    /// lets us read what the provider made of it.
    fn tells_message_id(&self, scopes: &[String]) -> bool;

    /// Closes connections that nobody has used for a while.
    fn drop_idle_connections(&self) {}
}
