//! The handlers' shared state.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::visits::Visits;
use mailgate_domain::accounts::Accounts;
use mailgate_domain::billing::Billing;
use mailgate_domain::certificates::Certificates;
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_domain::readiness::Readiness;
use mailgate_domain::reports::{Refusals, Reports};
use mailgate_domain::sending::Sending;
use mailgate_domain::sending::queue::Queue;
use mailgate_domain::webhooks::Webhooks;
use mailgate_server::own_hosts::OwnHosts;
use mailgate_server::stranger::Strangers;
use mailgate_settings::{Limits, PortalSettings};
use mailgate_telemetry::throttle::Throttle;
use mailgate_types::clock::SharedClock;
use mailgate_types::seal::SealKeys;

/// The state that all requests share; cloning costs one reference count.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

impl AppState {
    /// Shares it.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }
}

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl FromRef<AppState> for Arc<PortalSettings> {
    fn from_ref(state: &AppState) -> Self {
        Self::clone(&state.portal)
    }
}

/// The parts of the gateway that requests use.
#[derive(Debug)]
pub struct Shared {
    /// The database's availability.
    pub readiness: Readiness,
    /// Certificates from an ACME server; `None`: they come from files.
    pub certificates: Option<Certificates>,
    /// Subscribers, apps and their keys.
    pub accounts: Accounts,
    /// Subscriptions and the payment provider.
    pub billing: Billing,
    /// Connected mailboxes.
    pub mailboxes: Mailboxes,
    /// Sends messages.
    pub sending: Sending,
    /// Queued messages.
    pub queue: Queue,
    /// Logs and statistics.
    pub reports: Reports,
    /// Messages refused before a mailbox was chosen.
    pub refusals: Refusals,
    /// Webhook endpoints and deliveries.
    pub webhooks: Webhooks,
    /// The gateway's public URL, without a trailing slash.
    pub base_url: Arc<str>,
    /// The only names that it answers to; `None`: any.
    pub own_hosts: Option<OwnHosts>,
    /// Limits.
    pub limits: Arc<Limits>,
    /// The clock.
    pub clock: SharedClock,
    /// Cancelled when shutdown begins.
    pub stopping: CancellationToken,
    /// Cancelled when the process accepts no new requests.
    pub finishing: CancellationToken,
    /// The memory for callers that have not authenticated.
    pub strangers: Strangers,
    /// Rate limits for opening connect links.
    pub visits: Arc<Visits>,
    /// The keys that seal cursors and other values in addresses.
    pub seal_keys: Arc<SealKeys>,
    /// The gateway's operator.
    pub portal: Arc<PortalSettings>,
    /// Rate limit for log lines on forged payment events.
    pub refused_events: Arc<Throttle>,
    /// The operator token for sign-up; `None`: off.
    pub operator_token: Option<SecretString>,
    /// Whether customers' URLs may point to this machine.
    pub allow_private: bool,
}
