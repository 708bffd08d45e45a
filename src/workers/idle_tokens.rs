//! Refreshes tokens that aren't used, before the provider lets them lapse.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_storage::database::outage::trouble;

/// How often to poll for unused tokens while there are none.
const POLL: Duration = Duration::from_mins(1);

/// Refreshes unused tokens until `stop`.
pub async fn run(mailboxes: Mailboxes, stop: CancellationToken) {
    loop {
        match mailboxes.refresh_idle().await {
            Ok(0) => {}
            Ok(_) if !stop.is_cancelled() => continue,
            Ok(_) => return,
            Err(error) => trouble!(error, error, "unused tokens can't be read"),
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}
