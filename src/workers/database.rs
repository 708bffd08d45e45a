//! Checks whether the database is available.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::readiness::Readiness;

/// How often to check.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(readiness: Readiness, stop: CancellationToken) {
    while pause(EVERY, &stop).await {
        tokio::select! {
            () = readiness.look() => {}
            () = stop.cancelled() => return,
        }
    }
}
