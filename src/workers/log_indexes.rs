//! Builds the log's search indexes on old partitions without them: one at a time, by one replica at a time, while
//! messages are written. Until then searches are slower.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::pool::maintenance;
use mailgate_storage::log_indexes;
use mailgate_storage::partitions::{self, Right};

/// How often to check for missing indexes, and the delay after a failure.
const EVERY: Duration = Duration::from_mins(15);
const AGAIN: Duration = Duration::from_mins(1);

/// Runs until `stop`. The next process continues unfinished work.
pub async fn run(pool: PgPool, stop: CancellationToken) {
    loop {
        let built = stop.run_until_cancelled(round(&pool)).await;
        let wait = match built {
            None => return,
            Some(Ok(())) => EVERY,
            Some(Err(error)) => {
                trouble!(warn, error, "the log's indexes can't be built yet");
                AGAIN
            }
        };
        if !pause(wait, &stop).await {
            return;
        }
    }
}

async fn round(pool: &PgPool) -> Result<(), sqlx::Error> {
    // A check is cheap; only take the lock if there is work.
    let mut connection = maintenance(pool).await?;
    if !partitions::try_lock(&mut connection, Right::Index).await? {
        return Ok(());
    }
    let built = build_missing(&mut connection).await;
    // After an error the session ends, and its lock with it.
    built?;
    partitions::unlock(&mut connection, Right::Index).await
}

async fn build_missing(connection: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
    loop {
        let missing = log_indexes::missing(connection).await?;
        let Some(next) = missing.first() else {
            return log_indexes::drop_former(connection).await;
        };
        let began = Instant::now();
        log_indexes::build(connection, next).await?;
        tracing::info!(
            partition = next.partition,
            index = next.index,
            left = missing.len() - 1,
            seconds = began.elapsed().as_secs(),
            "an index of the log's was built"
        );
    }
}
