//! Checks whether the database can be used, and makes the log's partitions of today and tomorrow if they are missing.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::partitions::ensure;
use super::pause;
use crate::storage::readiness::{Readiness, Unable};
use mailgate_types::clock::SharedClock;

/// How often to check.
const EVERY: Duration = Duration::from_secs(1);

/// How long making the partitions may take, so that the checks go on.
const MADE: Duration = Duration::from_secs(5);

/// Runs until `stop`.
pub async fn run(
    readiness: Readiness,
    pool: PgPool,
    clock: SharedClock,
    retention_days: u32,
    stop: CancellationToken,
) {
    while pause(EVERY, &stop).await {
        tokio::select! {
            () = look(&readiness, &pool, &clock, retention_days) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn look(readiness: &Readiness, pool: &PgPool, clock: &SharedClock, retention_days: u32) {
    let mut found = readiness.probe().await;
    if let Err(trouble) = &mut found
        && trouble.why == Unable::NoPartition
    {
        match timeout(MADE, ensure(pool, clock, retention_days)).await {
            Ok(Ok(())) => found = readiness.probe().await,
            Ok(Err(error)) => trouble.cause = format!("{}: {error}", trouble.cause),
            Err(_) => trouble.cause.push_str(", and it isn't made yet"),
        }
    }
    readiness.note(found);
}
