//! Makes the log's daily partitions ahead of their days, and drops those that are too old.

use std::time::Duration;

use chrono::{Days, NaiveDate};
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::partitions;
use crate::types::clock::SharedClock;

/// Days for which partitions stand ready: a gateway that can't make them has two weeks to be mended.
const AHEAD: u64 = 14;

/// How often it looks.
const EVERY: Duration = Duration::from_mins(15);

/// The partitions could not be looked after.
#[derive(Debug, thiserror::Error)]
#[error("the log's partitions can't be looked after: {0}")]
pub struct PartitionError(#[from] sqlx::Error);

/// Makes sure, before the first message, that today's partition and the next ones are there. Waits
/// for another replica that is at it.
///
/// # Errors
///
/// [`PartitionError`].
pub async fn ensure(pool: &PgPool, clock: &SharedClock) -> Result<(), PartitionError> {
    let mut connection = pool.acquire().await?;
    partitions::lock(&mut connection).await?;
    let made = make_ahead(&mut connection, clock.now().date_naive()).await;
    partitions::unlock(&mut connection).await?;
    Ok(made?)
}

/// Runs until `stop`; one replica at a time does the work.
pub async fn run(pool: PgPool, clock: SharedClock, retention_days: u32, stop: CancellationToken) {
    loop {
        if let Err(error) = round(&pool, &clock, retention_days).await {
            tracing::error!(%error, "the log's partitions can't be looked after");
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}

async fn round(pool: &PgPool, clock: &SharedClock, retention_days: u32) -> Result<(), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    if !partitions::try_lock(&mut connection).await? {
        return Ok(());
    }
    let done = look_after(&mut connection, clock.now().date_naive(), retention_days).await;
    partitions::unlock(&mut connection).await?;
    done
}

async fn look_after(
    connection: &mut PgConnection,
    today: NaiveDate,
    retention_days: u32,
) -> Result<(), sqlx::Error> {
    make_ahead(connection, today).await?;
    if let Some(oldest) = today.checked_sub_days(Days::new(retention_days.into())) {
        let dropped = partitions::drop_before(connection, oldest).await?;
        if dropped > 0 {
            tracing::info!(days = dropped, "old log partitions were dropped");
        }
    }
    Ok(())
}

async fn make_ahead(connection: &mut PgConnection, today: NaiveDate) -> Result<(), sqlx::Error> {
    // Yesterday's too: messages that were opened before midnight close after it.
    let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
    for day in first
        .iter_days()
        .take(usize::try_from(AHEAD).unwrap_or(14) + 2)
    {
        partitions::create(connection, day).await?;
    }
    Ok(())
}
