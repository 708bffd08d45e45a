//! Stores refusals, and removes expired ones.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::reports::Refusals;
use mailgate_storage::database::outage::trouble;

/// How often to write.
const EVERY: Duration = Duration::from_secs(1);

/// How often to remove.
const FORGET: Duration = Duration::from_hours(1);

/// Runs until `stop`; refusals recorded by then are stored.
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
