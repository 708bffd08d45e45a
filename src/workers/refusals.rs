//! Writes what was refused, and removes what has aged away.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::reports::Refusals;
use crate::storage::outage::trouble;

/// How often it writes.
const EVERY: Duration = Duration::from_secs(1);

/// How often it removes.
const FORGET: Duration = Duration::from_hours(1);

/// Runs until `stop`; what was noted by then is written.
pub async fn run(refusals: Refusals, stop: CancellationToken) {
    let mut forgotten_at: Option<Instant> = None;
    loop {
        let goes_on = pause(EVERY, &stop).await;
        if let Err(error) = refusals.write().await {
            trouble!(warn, error, "refusals can't be written yet; they are kept");
        }
        if !goes_on {
            return;
        }
        if forgotten_at.is_none_or(|at| at.elapsed() >= FORGET) {
            match refusals.forget().await {
                Ok(()) => forgotten_at = Some(Instant::now()),
                Err(error) => trouble!(warn, error, "old refusals can't be removed"),
            }
        }
    }
}
