//! Certificates from an ACME server: one loop loads new ones from the database, another orders those due.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::workers::{every, pause};
use mailgate_domain::certificates::{Attempted, Certificates};
use mailgate_storage::database::outage::trouble;

/// How often to poll the database for new certificates: all gateways serve one within a minute.
const SHOW: Duration = Duration::from_secs(10);

/// How often to poll for certificates due.
const ORDER: Duration = Duration::from_secs(10);

/// How often unused certificates are removed.
const FORGET: Duration = Duration::from_hours(24);

/// Serves new certificates until `stop`.
pub async fn show(certificates: Certificates, stop: CancellationToken) {
    every(SHOW, &stop, "new certificates can't be read", || {
        certificates.refresh()
    })
    .await;
}

/// Orders certificates due until `stop`, which aborts an order in progress.
pub async fn order(certificates: Certificates, stop: CancellationToken) {
    let mut forgot_at: Option<Instant> = None;
    while !stop.is_cancelled() {
        match certificates.renew_due(&stop).await {
            // Another one may be due.
            Ok(Attempted::Issued | Attempted::Failed) => continue,
            Ok(Attempted::Nothing | Attempted::BrokenOff) => {}
            Err(error) => trouble!(error, error, "due certificates can't be ordered"),
        }
        if forgot_at.is_none_or(|at| at.elapsed() > FORGET) {
            if let Err(error) = certificates.forget().await {
                trouble!(error, error, "unused certificates can't be removed");
            }
            forgot_at = Some(Instant::now());
        }
        if !pause(ORDER, &stop).await {
            return;
        }
    }
}
