//! Tries stored messages again when they are due, picks up what a dead process left, and closes
//! connections that nobody uses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::providers::mail::MailProviders;
use crate::sending::{Leases, Sending};
use crate::storage::outage::trouble;

/// How often it looks for due messages while there are none.
const POLL: Duration = Duration::from_secs(1);

/// How often it says that it lives, and looks for what dead processes left.
const RECOVER: Duration = Duration::from_secs(15);

/// How long nobody's messages are taken up after the database could not be asked: their processes could not
/// say that they live meanwhile, and say it within [`RECOVER`] now.
const AFTER_TROUBLE: Duration = Duration::from_secs(30);

/// Says that this process lives as long as anybody sends, however long the other work takes, and the end.
pub async fn hold(leases: Leases) {
    while pause(RECOVER, leases.nobody_sends()).await {
        if let Err(error) = leases.extend().await {
            trouble!(error, error, "the messages in hand can't be held on to");
        }
    }
}

/// Runs until `stop`.
pub async fn run(sending: Sending, providers: Arc<MailProviders>, stop: CancellationToken) {
    let mut recovered_at = None;
    let mut trouble_at: Option<Instant> = None;
    loop {
        if recovered_at.is_none_or(|at: Instant| at.elapsed() > RECOVER) {
            providers.drop_idle_connections();
            // Before anybody looks: a clock that was set takes no message from a process that lives.
            if let Err(error) = sending.leases().extend().await {
                trouble!(error, error, "the messages in hand can't be held on to");
                trouble_at = Some(Instant::now());
            }
            if trouble_at.is_none_or(|at| at.elapsed() > AFTER_TROUBLE) {
                trouble_at = recover(&sending).await.err().map(|()| Instant::now());
            }
            if let Err(error) = sending.forget_keys().await {
                trouble!(error, error, "old idempotency keys can't be forgotten");
            }
            if let Err(error) = sending.fold_usage().await {
                trouble!(error, error, "what waits for each app can't be added up");
            }
            recovered_at = Some(Instant::now());
        }
        match sending.retry_due().await {
            Ok(0) => {}
            // There may be more, and places are given back one by one.
            Ok(_) if !stop.is_cancelled() => continue,
            Ok(_) => return,
            Err(error) => {
                trouble!(error, error, "due messages can't be looked for");
                trouble_at = Some(Instant::now());
            }
        }
        if !pause(POLL, &stop).await {
            return;
        }
    }
}

/// All there are: a process that died may have left many.
async fn recover(sending: &Sending) -> Result<(), ()> {
    loop {
        match sending.recover_abandoned().await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                trouble!(error, error, "abandoned messages can't be looked for");
                return Err(());
            }
        }
    }
}
