//! Tries stored messages again when they are due, picks up what a dead process left, and closes
//! connections that nobody uses.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::providers::mail::MailProviders;
use crate::sending::Sending;

/// How often it looks for due messages while there are none.
const POLL: Duration = Duration::from_secs(1);

/// How often it looks for what dead processes left, in polls.
const RECOVER_EVERY: u32 = 30;

/// Runs until `stop`.
pub async fn run(sending: Sending, providers: Arc<MailProviders>, stop: CancellationToken) {
    let mut polls = 0_u32;
    loop {
        match sending.retry_due().await {
            Ok(0) => {}
            Ok(_) if stop.is_cancelled() => return,
            Ok(_) => continue,
            Err(error) => tracing::error!(%error, "due messages can't be looked for"),
        }
        if polls.is_multiple_of(RECOVER_EVERY) {
            providers.drop_idle_connections();
            if let Err(error) = sending.recover_abandoned().await {
                tracing::error!(%error, "abandoned messages can't be looked for");
            }
        }
        polls = polls.wrapping_add(1);
        if !pause(POLL, &stop).await {
            return;
        }
    }
}
