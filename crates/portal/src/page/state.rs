//! The pages' shared state.

use std::ops::Deref;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use mailgate_domain::accounts::{Accounts, SignInMail};
use mailgate_domain::billing::Billing;
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_domain::reports::{Refusals, Reports};
use mailgate_domain::sending::queue::Queue;
use mailgate_domain::webhooks::Webhooks;
use mailgate_settings::PortalSettings;
use mailgate_types::clock::SharedClock;
use mailgate_types::seal::SealKeys;

/// The state that all pages share; cloning costs one reference count.
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
    /// Queued messages.
    pub queue: Queue,
    /// Logs and statistics.
    pub reports: Reports,
    /// The clock.
    pub clock: SharedClock,
    /// The keys that seal cursors.
    pub seal_keys: Arc<SealKeys>,
    /// The gateway's operator.
    pub settings: Arc<PortalSettings>,
    /// Cancelled when shutdown begins.
    pub stopping: CancellationToken,
    /// The portal's public URL, without a trailing slash.
    pub address: String,
    /// The gateway's public URL, without a trailing slash.
    pub base_url: String,
    /// The SMTP submission service.
    pub submission: Submission,
    /// Mails sign-in links, if the gateway can.
    pub sign_in_mail: Option<SignInMail>,
    /// Messages refused before a mailbox was chosen.
    pub refusals: Refusals,
    /// Whether endpoints may be on private networks.
    pub allow_private: bool,
}

/// The SMTP submission service.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The host that clients connect to.
    pub host: String,
    /// The port with STARTTLS, if it is served.
    pub starttls_port: Option<u16>,
    /// The port with implicit TLS, if it is served.
    pub tls_port: Option<u16>,
}
