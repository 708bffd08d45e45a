//! The common interface of transports: a mailbox with an access token, an envelope, and a verdict.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use secrecy::SecretString;

use super::verdict::Verdict;
use mailgate_types::ids::CredentialId;
use mailgate_types::lease::Lease;
use mailgate_types::message::Message;

/// The error text of a message that was withheld.
pub const NOT_CONFIRMED: &str =
    "the gateway could not rule out that another process has the message, and did not send it";

/// A mailbox and an access token for it.
#[derive(Debug, Clone)]
pub struct MailboxAccess {
    /// The mailbox.
    pub credential: CredentialId,
    /// Its address: user name and envelope sender.
    pub address: String,
    /// The generation of the mailbox's access token.
    pub generation: i64,
    /// The access token.
    pub access_token: SecretString,
    /// The granted scopes.
    pub scopes: Arc<[String]>,
}

/// The recipients of a message.
#[derive(Debug, Clone)]
pub struct Recipients {
    /// Their addresses.
    pub addresses: Vec<String>,
    /// An address or a header isn't ASCII.
    pub smtputf8: bool,
}

/// Checked right before the last part of a message is sent: from then on the provider may have it.
pub trait SendPermit: Debug + Send + Sync {
    /// The error is the reason for not sending it.
    fn check(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// Always permits: for a message that no other process can be sending.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysPermitted;

impl SendPermit for AlwaysPermitted {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// For a message that only this process has.
impl SendPermit for Lease {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        let answer = if self.is_fresh() {
            Ok(())
        } else {
            tracing::warn!(
                "a message was not sent: this process's lease was not confirmed recently"
            );
            Err(NOT_CONFIRMED.to_owned())
        };
        std::future::ready(answer).boxed()
    }
}

/// A transport to a provider.
pub trait MailTransport: Debug + Send + Sync {
    /// Submits a message once. Waits for a slot if the mailbox has reached its limit of concurrent submissions. Each
    /// stage is bounded in time. `permit` is checked before the provider may have the message; if it refuses, the
    /// verdict is a temporary failure.
    fn submit<'a>(
        &'a self,
        account: &'a MailboxAccess,
        recipients: &'a Recipients,
        message: &'a Message,
        permit: &'a dyn SendPermit,
    ) -> BoxFuture<'a, Verdict>;

    /// Whether the final Message-ID of a message is known: it is unchanged, or the granted scopes let us read the
    /// provider's.
    fn tells_message_id(&self, scopes: &[String]) -> bool;

    /// Sets the number of gateways that share each mailbox's concurrency limit.
    fn share_among(&self, _living: usize) {}

    /// Closes connections that have been idle for a while.
    fn drop_idle_connections(&self) {}
}
