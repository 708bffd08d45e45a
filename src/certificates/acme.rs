//! Certificates from an ACME server: one loop shows what is new in the database, another one orders what is due.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::workers::{every, pause};
use mailgate_domain::certificates::{Attempted, Certificates};
use mailgate_storage::database::outage::trouble;

/// How often the database is asked for new certificates: all gateways show one within a minute.
const SHOW: Duration = Duration::from_secs(10);

/// How often it is asked for what is due.
const ORDER: Duration = Duration::from_secs(10);

/// How often what nobody uses is removed.
const FORGET: Duration = Duration::from_hours(24);

/// Shows new certificates until `stop`.
pub async fn show(certificates: Certificates, stop: CancellationToken) {
    every(SHOW, &stop, "new certificates can't be read", || {
        certificates.refresh()
    })
    .await;
}

/// Orders what is due until `stop`; an order under way is broken off then.
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
