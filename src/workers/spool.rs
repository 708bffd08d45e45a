//! Processes the spool: retries stored messages when they are due, recovers those of dead processes, and closes idle
//! connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::sending::Sending;
use mailgate_providers::mail::MailProviders;
use mailgate_storage::database::outage::trouble;

/// How often to poll for due messages while there are none, for messages of processes that have ended, and for
/// messages whose subscription is active again.
const POLL: Duration = Duration::from_secs(1);

/// How often to poll for messages without an owner, and do the other work.
const RECOVER: Duration = Duration::from_secs(15);

/// Runs until `stop`.
pub async fn run(sending: Sending, providers: Arc<MailProviders>, stop: CancellationToken) {
    let (mut taken_over_at, mut recovered_at): (Option<Instant>, Option<Instant>) = (None, None);
    loop {
        if taken_over_at.is_none_or(|at| at.elapsed() >= POLL) {
            recover(&sending, Left::Ended).await;
            if let Err(error) = sending.release_waiting().await {
                trouble!(
                    error,
                    error,
                    "messages waiting for a subscription can't be read"
                );
            }
            taken_over_at = Some(Instant::now());
        }
        if recovered_at.is_none_or(|at| at.elapsed() > RECOVER) {
            providers.drop_idle_connections();
            recover(&sending, Left::Nobody).await;
            if let Err(error) = sending.recover_forgotten().await {
                trouble!(error, error, "messages in progress can't be read");
            }
            if let Err(error) = sending.forget_keys().await {
                trouble!(error, error, "old idempotency keys can't be removed");
            }
            if let Err(error) = sending.fold_usage().await {
                trouble!(
                    error,
                    error,
                    "the waiting mail of each app can't be counted"
                );
            }
            recovered_at = Some(Instant::now());
        }
        match sending.retry_due().await {
            Ok(0) => {}
            // There may be more, and slots are freed one by one.
            Ok(_) if !stop.is_cancelled() => continue,
            Ok(_) => return,
            Err(error) => trouble!(error, error, "due messages can't be read"),
        }
        // A mailbox with all slots in use can continue once one is freed.
        let goes_on = tokio::select! {
            goes_on = pause(POLL, &stop) => goes_on,
            () = sending.place_freed() => !stop.is_cancelled(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Which messages to recover.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// Messages of ended processes.
    Ended,
    /// Messages without an owner.
    Nobody,
}

/// Recovers all messages: a dead process may have left many.
async fn recover(sending: &Sending, left: Left) {
    loop {
        let recovered = match left {
            Left::Ended => sending.take_over().await,
            Left::Nobody => sending.recover_lapsed().await,
        };
        match recovered {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                trouble!(error, error, ?left, "abandoned messages can't be read");
                return;
            }
        }
    }
}
