//! What handlers work with.

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

/// What all requests share; a copy costs one count.
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
    /// Whether the database is there.
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
    /// What waits to be sent.
    pub queue: Queue,
    /// Logs and statistics.
    pub reports: Reports,
    /// Messages refused before they had a mailbox.
    pub refusals: Refusals,
    /// Webhook endpoints and deliveries.
    pub webhooks: Webhooks,
    /// Where users reach all of this, without a slash at its end.
    pub base_url: Arc<str>,
    /// The names that it answers to alone; `None`: any.
    pub own_hosts: Option<OwnHosts>,
    /// Limits.
    pub limits: Arc<Limits>,
    /// The clock.
    pub clock: SharedClock,
    /// Cancelled when the process is about to end.
    pub stopping: CancellationToken,
    /// Cancelled when nothing new is taken any more.
    pub finishing: CancellationToken,
    /// What is held for callers that have not authenticated.
    pub strangers: Strangers,
    /// How often connect links are opened.
    pub visits: Arc<Visits>,
    /// Seal what comes back in addresses.
    pub seal_keys: Arc<SealKeys>,
    /// Who runs the gateway.
    pub portal: Arc<PortalSettings>,
    /// The line on events that are not the payment provider's.
    pub refused_events: Arc<Throttle>,
    /// Opens sign-up; `None`: off.
    pub operator_token: Option<SecretString>,
    /// Whether customers' addresses may be this machine's.
    pub allow_private: bool,
}
