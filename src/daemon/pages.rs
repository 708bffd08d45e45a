//! The pages that people see, built from the parts that requests share.

use axum::Router;

use crate::portal::{self, Parts, PortalState};
use crate::rest::AppState;

/// The portal; no page at all if it is off.
pub(super) fn portal(state: &AppState) -> Router {
    let address = state
        .portal
        .enabled
        .then(|| state.portal.address(&state.base_url));
    let Some(address) = address.flatten() else {
        return Router::new();
    };
    portal::router(PortalState::new(Parts {
        accounts: state.accounts.clone(),
        billing: state.billing.clone(),
        mailboxes: state.mailboxes.clone(),
        webhooks: state.webhooks.clone(),
        queue: state.queue.clone(),
        reports: state.reports.clone(),
        clock: state.clock.clone(),
        seal_keys: state.seal_keys.clone(),
        settings: state.portal.clone(),
        stopping: state.stopping.clone(),
        address,
        base_url: state.base_url.to_string(),
    }))
}
