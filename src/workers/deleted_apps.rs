//! Removes what deleted apps left in the log.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::mailboxes::Mailboxes;
use crate::storage::outage::trouble;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(5);

/// Runs until `stop`.
pub async fn run(mailboxes: Mailboxes, stop: CancellationToken) {
    loop {
        if let Err(error) = mailboxes.purge_deleted_apps(&stop).await {
            trouble!(error, error, "the logs of deleted apps can't be removed");
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}
