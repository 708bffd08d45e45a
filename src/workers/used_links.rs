//! Forgets the used connect links that have lapsed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::mailboxes::Mailboxes;
use crate::storage::outage::trouble;

/// How often it looks.
const EVERY: Duration = Duration::from_mins(1);

/// Runs until `stop`.
pub async fn run(mailboxes: Mailboxes, stop: CancellationToken) {
    loop {
        if let Err(error) = mailboxes.forget_lapsed_links(&stop).await {
            trouble!(error, error, "expired connect links can't be removed");
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}
