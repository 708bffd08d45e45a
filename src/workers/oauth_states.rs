//! Removes the states of users who went to a provider and never came back.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::mailboxes::Mailboxes;

/// How often it looks.
const EVERY: Duration = Duration::from_mins(1);

/// Runs until `stop`.
pub async fn run(mailboxes: Mailboxes, stop: CancellationToken) {
    loop {
        if let Err(error) = mailboxes.remove_lapsed_states(&stop).await {
            tracing::error!(%error, "lapsed OAuth states can't be removed");
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}
