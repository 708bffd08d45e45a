//! Access tokens that lapse, grants that die, and refreshes that race: with the sandbox where it can
//! do it, with the stand-in where no honest provider would.

mod abandoned;
mod at_once;
mod endpoint;
mod grants;
mod lives;
mod refused;
mod stored;

use chrono::TimeDelta;

use crate::support::gateway::Gateway;

/// Past the life of every token here.
const LAPSED: TimeDelta = TimeDelta::hours(2);

/// Of the stand-in's mailbox.
async fn mailbox_status(gateway: &Gateway) -> String {
    sqlx::query_scalar("SELECT status FROM mailboxes WHERE plugin = 'plugin_b'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}
