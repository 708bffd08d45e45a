//! Floor 3: the loops that look for due work and call a domain function.

mod addresses;
mod billing;
mod certificate;
mod counters;
mod database;
mod deleted_apps;
mod expiry;
mod gauges;
mod lease;
mod mailboxes;
mod notices;
mod partitions;
mod places;
mod refusals;
mod sessions;
mod spool;
mod used_links;
mod webhooks;

pub use addresses::run as read_addresses;
pub use billing::run as billing_loop;
pub use certificate::{EVERY as CERTIFICATE_EVERY, run as keep_certificate};
pub use counters::run as fold_counters;
pub use database::run as watch_database;
pub use deleted_apps::run as purge_deleted_apps;
pub use expiry::{Certificates, run as watch_certificates};
pub use gauges::run as measure;
pub use lease::run as keep_lease;
pub use mailboxes::{refresh_idle, replies};
pub use notices::run as send_notices;
pub use partitions::{PartitionError, ensure as ensure_partitions, run as keep_partitions};
pub use refusals::run as write_refusals;
pub use sessions::run as end_sessions;
pub use spool::run as keep_spool_moving;
pub use used_links::run as forget_lapsed_links;
pub use webhooks::run as wake_webhooks;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Waits, unless the end is asked for; `false` then.
async fn pause(length: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(length) => true,
        () = stop.cancelled() => false,
    }
}
