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
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The last attempt was refused, and nothing has been logged of it.
    Doubted,
    Shut,
}

/// A change of whether new connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Shut,
    Open,
}

impl Door {
    /// Tries periodically, and logs a change. `readiness` reports a complete outage.
    async fn look(&mut self, readiness: &Readiness, pool: &PgPool) {
        let is_doubted = self.state == State::Doubted;
        let is_due = is_doubted || self.looked.is_none_or(|looked| looked.elapsed() >= DOOR);
        if readiness.last() != Ready::Yes {
            if is_doubted {
                self.state = State::Open;
            }
            return;
        }
        if !is_due {
            return;
        }
        self.looked = Some(Instant::now());
        let refusal = match timeout(MADE, pool::reach(pool)).await {
            Ok(reached) => reached.err(),
            // A timeout isn't a refusal.
            Err(_) => None,
        };
        match (self.after(refusal.is_some()), refusal) {
            (Some(Change::Shut), Some(error)) => {
                let advice = pool::advice(&error);
                tracing::error!(%error, "the database refuses new connections, and those that are open are used until they end; {advice}");
            }
            (Some(Change::Open), _) => {
                tracing::info!("the database takes new connections again");
            }
            _ => {}
        }
    }

    /// The change to log after an attempt. A first refusal may be the beginning of an outage, which the next check of
    /// `readiness` finds: only a second one, with the database ready in between, is a change.
    fn after(&mut self, is_refused: bool) -> Option<Change> {
        let was = self.state;
        self.state = match (is_refused, was) {
            (false, _) => State::Open,
            (true, State::Open) => State::Doubted,
            (true, State::Doubted | State::Shut) => State::Shut,
        };
        match (was, self.state) {
            (State::Doubted, State::Shut) => Some(Change::Shut),
            (State::Shut, State::Open) => Some(Change::Open),
            _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_refused_twice_is_shut() {
        let mut door = Door::default();
        for (is_refused, change) in [
            (false, None),
            (true, None),
            (false, None),
            (true, None),
            (true, Some(Change::Shut)),
            (true, None),
            (false, Some(Change::Open)),
            (false, None),
            (true, None),
            (true, Some(Change::Shut)),
        ] {
            assert_eq!(door.after(is_refused), change);
        }
    }
}
