//! Floor 3: the loops that poll for due work and call a domain function.

mod billing;
mod client_secrets;
mod clock;
mod database;
mod gauges;
mod idle_tokens;
mod jobs;
mod lease_renewal;
mod log_indexes;
mod notices;
mod notifications;
mod partitions;
mod places;
mod refusals;
mod replies;
mod sign_of_life;
mod spool;

pub use billing::run as billing_loop;
pub use client_secrets::ClientSecrets;
pub use database::run as watch_database;
pub use gauges::run as measure;
pub use idle_tokens::run as refresh_idle;
pub use jobs::start_jobs;
pub use lease_renewal::run as keep_lease;
pub use log_indexes::run as build_log_indexes;
pub use notices::run as send_notices;
pub use notifications::{end_sessions, wake_webhooks};
pub use partitions::{
    PartitionError, Retention, ensure as ensure_partitions, run as keep_partitions,
};
pub use refusals::run as write_refusals;
pub use replies::run as poll_replies;
pub use sign_of_life::{leave_first as leave_sign_of_life, run as leave_signs_of_life};
pub use spool::run as keep_spool_moving;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use mailgate_storage::database::outage::trouble;

/// Waits; `false` if `stop` is cancelled first.
pub(crate) async fn pause(length: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(length) => true,
        () = stop.cancelled() => false,
    }
}

/// Runs a round of work repeatedly, `length` after the end of the last one, until `stop`. A failed round is logged
/// with the text `trouble`.
pub(crate) async fn every<R>(
    length: Duration,
    stop: &CancellationToken,
    trouble: &'static str,
    mut round: impl FnMut() -> R,
) where
    R: Future<Output = Result<(), sqlx::Error>>,
{
    loop {
        if let Err(error) = round().await {
            trouble!(error, error, "{trouble}");
        }
        if !pause(length, stop).await {
            return;
        }
    }
}
