//! What pages work with.

use std::ops::Deref;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use crate::billing::Billing;
use crate::config::PortalSettings;
use crate::mailboxes::Mailboxes;
use crate::reports::Reports;
use crate::sending::queue::Queue;
use crate::webhooks::Webhooks;
use mailgate_types::clock::SharedClock;
use mailgate_types::seal::SealKeys;

/// What all pages share; a copy costs one count.
#[derive(Debug, Clone)]
pub struct PortalState(Arc<Parts>);

impl PortalState {
    /// Shares it.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for PortalState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of the gateway that pages use.
#[derive(Debug)]
pub struct Parts {
    /// Subscribers, apps, keys, and who is signed in.
    pub accounts: Accounts,
    /// Subscriptions and the payment provider.
    pub billing: Billing,
    /// Connected mailboxes.
    pub mailboxes: Mailboxes,
    /// Webhook endpoints and deliveries.
    pub webhooks: Webhooks,
    /// What waits to be sent.
    pub queue: Queue,
    /// Logs and statistics.
    pub reports: Reports,
    /// The clock.
    pub clock: SharedClock,
    /// Seal what comes back in addresses.
    pub seal_keys: Arc<SealKeys>,
    /// Who runs the gateway.
    pub settings: Arc<PortalSettings>,
    /// Cancelled when the process is about to end.
    pub stopping: CancellationToken,
    /// Where subscribers reach the portal, without a slash at its end.
    pub address: String,
    /// Where people reach the gateway, without a slash at its end.
    pub base_url: String,
}
