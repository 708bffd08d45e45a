//! Checks whether the database can be used, and creates the log's partitions of today and tomorrow if missing.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::partitions::ensure;
use super::pause;
use mailgate_storage::database::pool;
use mailgate_storage::database::readiness::{Readiness, Ready, Unable};
use mailgate_types::clock::SharedClock;

/// How often to check.
const EVERY: Duration = Duration::from_secs(1);

/// How often to try a new connection.
const DOOR: Duration = Duration::from_secs(10);

/// The timeout for creating the partitions, so that the checks continue.
const MADE: Duration = Duration::from_secs(5);

/// Runs until `stop`.
pub async fn run(
    readiness: Readiness,
    pool: PgPool,
    clock: SharedClock,
    retention_days: u32,
    stop: CancellationToken,
) {
    let mut door = Door::default();
    while pause(EVERY, &stop).await {
        let look = async {
            look(&readiness, &pool, &clock, retention_days).await;
            door.look(&readiness, &pool).await;
        };
        tokio::select! {
            () = look => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Whether the database accepts new connections: open ones keep working after its role's password was changed.
#[derive(Default)]
struct Door {
    looked: Option<Instant>,
    is_shut: bool,
}

impl Door {
    /// Tries periodically, and logs a change. `readiness` reports a complete outage.
    async fn look(&mut self, readiness: &Readiness, pool: &PgPool) {
        if readiness.last() != Ready::Yes || self.looked.is_some_and(|at| at.elapsed() < DOOR) {
            return;
        }
        self.looked = Some(Instant::now());
        let reached = match timeout(MADE, pool::reach(pool)).await {
            Ok(Err(error)) => Err(error),
            // A timeout isn't a refusal.
            Ok(Ok(())) | Err(_) => Ok(()),
        };
        match (reached, self.is_shut) {
            (Err(error), false) => {
                let advice = pool::advice(&error);
                tracing::error!(%error, "the database refuses new connections, and those that are open are used until they end; {advice}");
                self.is_shut = true;
            }
            (Ok(()), true) => {
                tracing::info!("the database takes new connections again");
                self.is_shut = false;
            }
            _ => {}
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
