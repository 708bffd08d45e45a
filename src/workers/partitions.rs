//! Creates the log's daily partitions ahead of time, and drops those that are too old, along with other data kept for
//! as long as the log.

use std::time::Duration;

use chrono::{Days, NaiveDate};
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::outage::trouble;
use crate::storage::partitions::{self, Right, Tables, midnight};
use crate::storage::pool::maintenance;
use crate::storage::{
    audit_entries, bounced_messages, bounces, email_counters, log_retention, replies,
    webhook_counters, webhook_queue,
};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::WebhookMessageId;

/// How many days ahead partitions are created: if that fails, there are two weeks to fix it.
const AHEAD: usize = 14;

/// How many for the log: a message that is cancelled has its row at the time that it was scheduled for, up to 30 days
/// ahead.
const LOG_AHEAD: usize = 35;

/// How often to check.
const EVERY: Duration = Duration::from_mins(15);

/// Days of the past that statistics show, plus one for replicas whose clocks differ.
const COUNTED: u64 = 31;

/// Counters, audit entries or bounces removed per statement.
const BATCH: i64 = 1_000;

/// How often to check whether another replica has finished, and after how many checks to log it.
const WAIT: Duration = Duration::from_millis(100);
const TELL_EVERY: u32 = 50;

/// The partitions could not be maintained.
#[derive(Debug, thiserror::Error)]
#[error("the log's partitions can't be maintained: {0}")]
pub struct PartitionError(#[from] sqlx::Error);

/// Ensures, before the first message, that the partitions of today and the next days exist.
pub async fn ensure(pool: &PgPool, clock: &SharedClock) -> Result<(), PartitionError> {
    let mut connection = maintenance(pool).await?;
    let today = clock.now().date_naive();
    let mut waits = 0_u32;
    while !make(&mut connection, today).await? {
        if waits.is_multiple_of(TELL_EVERY) {
            tracing::info!("waiting for another replica that makes the log's partitions");
        }
        waits += 1;
        tokio::time::sleep(WAIT).await;
    }
    Ok(())
}

/// Runs until `stop`; one replica at a time does the work.
pub async fn run(pool: PgPool, clock: SharedClock, retention_days: u32, stop: CancellationToken) {
    loop {
        if let Err(error) = round(&pool, &clock, retention_days).await {
            trouble!(error, error, "the log's partitions can't be maintained");
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}

async fn round(pool: &PgPool, clock: &SharedClock, retention_days: u32) -> Result<(), sqlx::Error> {
    let mut connection = maintenance(pool).await?;
    let today = clock.now().date_naive();
    make(&mut connection, today).await?;
    if !partitions::try_lock(&mut connection, Right::Drop).await? {
        return Ok(());
    }
    let dropped = drop_old(&mut connection, today, retention_days).await;
    partitions::unlock(&mut connection, Right::Drop).await?;
    dropped
}

/// Creates the missing partitions of today and the next days; `false` if another replica is doing it.
async fn make(connection: &mut PgConnection, today: NaiveDate) -> Result<bool, sqlx::Error> {
    if missing(connection, today).await?.is_empty() {
        return Ok(true);
    }
    if !partitions::try_lock(connection, Right::Make).await? {
        return Ok(false);
    }
    let made = make_missing(connection, today).await;
    partitions::unlock(connection, Right::Make).await?;
    made.map(|()| true)
}

async fn make_missing(connection: &mut PgConnection, today: NaiveDate) -> Result<(), sqlx::Error> {
    for (tables, day) in missing(connection, today).await? {
        partitions::create_in(connection, tables, day).await?;
    }
    Ok(())
}

/// The partitions that are still to be created.
async fn missing(
    connection: &mut PgConnection,
    today: NaiveDate,
) -> Result<Vec<(Tables, NaiveDate)>, sqlx::Error> {
    let mut all = Vec::new();
    for tables in Tables::ALL {
        let days = days_ahead(tables, today);
        let missing = partitions::missing(connection, tables, &days).await?;
        all.extend(missing.into_iter().map(|day| (tables, day)));
    }
    Ok(all)
}

/// Drops partitions that are too old, except those of days whose webhooks are still waiting in the queue, where the
/// schedule keeps them for a day or two. A message still waiting in the spool is ended without a log row.
async fn drop_old(
    connection: &mut PgConnection,
    today: NaiveDate,
    retention_days: u32,
) -> Result<(), sqlx::Error> {
    let Some(oldest) = today.checked_sub_days(Days::new(retention_days.into())) else {
        return Ok(());
    };
    let queued = webhook_queue::oldest(connection).await?;
    let queued = queued.and_then(WebhookMessageId::moment);
    let oldest = queued.map_or(oldest, |waiting| oldest.min(waiting.date_naive()));
    // First, so that no report counts what is about to be dropped.
    log_retention::keep_since(connection, midnight(oldest)).await?;
    let dropped = partitions::drop_before(connection, oldest).await?;
    if dropped > 0 {
        tracing::info!(days = dropped, "old log partitions were dropped");
    }
    while audit_entries::remove_before(connection, midnight(oldest), BATCH).await? > 0 {}
    while bounced_messages::remove_before(connection, midnight(oldest), BATCH).await? > 0 {}
    while bounces::remove_before(connection, midnight(oldest), BATCH).await? > 0 {}
    while replies::remove_before(connection, midnight(oldest), BATCH).await? > 0 {}
    forget_counters(connection, today, oldest).await
}

/// Removes the counters of hours and days that no report reads.
async fn forget_counters(
    connection: &mut PgConnection,
    today: NaiveDate,
    oldest: NaiveDate,
) -> Result<(), sqlx::Error> {
    let shown = today.checked_sub_days(Days::new(COUNTED)).unwrap_or(oldest);
    let before = midnight(oldest.min(shown));
    while email_counters::remove_old(connection, before, BATCH).await? > 0 {}
    // The webhook counters cover what can be listed, so they are removed with it.
    while webhook_counters::remove_before(connection, midnight(oldest), BATCH).await? > 0 {}
    Ok(())
}

/// Includes yesterday: messages opened before midnight close after it.
fn days_ahead(tables: Tables, today: NaiveDate) -> Vec<NaiveDate> {
    let ahead = match tables {
        Tables::Log => LOG_AHEAD,
        Tables::Webhooks => AHEAD,
    };
    let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
    first.iter_days().take(ahead + 2).collect()
}
