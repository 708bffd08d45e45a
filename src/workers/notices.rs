//! Sends due notices to subscribers, and deletes old ones.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::billing::notices::Notices;
use mailgate_storage::database::outage::trouble;

/// How often to poll while there are none.
const POLL: Duration = Duration::from_secs(1);

/// How often old ones are deleted.
const FORGET: Duration = Duration::from_hours(1);

/// Runs until `stop`; notices being sent are finished first.
pub async fn run(notices: Notices, stop: CancellationToken) {
    let mut forgot_at: Option<Instant> = None;
    loop {
        if forgot_at.is_none_or(|at| at.elapsed() > FORGET) {
            if let Err(error) = notices.forget().await {
                trouble!(error, error, "old notices can't be removed");
            }
            forgot_at = Some(Instant::now());
        }
        match notices.send_due().await {
            Ok(0) => {}
            Ok(_) if !stop.is_cancelled() => continue,
            Ok(_) => return,
            Err(error) => trouble!(error, error, "due notices can't be sent"),
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}
