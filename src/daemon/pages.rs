//! The HTML pages, built from the state that requests share.

use std::time::Duration;

use axum::Router;

use mailgate_domain::accounts::SignInMail;
use mailgate_portal::{Parts, PortalState, Submission};
use mailgate_rest::{AppState, router};

/// All routes of the HTTP interface, including the portal's.
pub(super) fn routes(
    state: AppState,
    submission: Submission,
    sign_in_mail: Option<SignInMail>,
    limit: Duration,
) -> Router {
    let pages = portal(&state, submission, sign_in_mail);
    router(state, pages, limit)
}

/// The portal's routes; empty if it is off.
fn portal(state: &AppState, submission: Submission, sign_in_mail: Option<SignInMail>) -> Router {
    let address = state
        .portal
        .enabled
        .then(|| state.portal.address(&state.base_url));
    let Some(address) = address.flatten() else {
        return Router::new();
    };
    mailgate_portal::router(PortalState::new(Parts {
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
        submission,
        sign_in_mail,
        refusals: state.refusals.clone(),
        allow_private: state.allow_private,
    }))
}
