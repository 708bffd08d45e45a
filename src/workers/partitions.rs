//! Creates the log's daily partitions ahead of time, and drops those that are too old, along with other data kept for
//! as long as the log.

use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate, TimeDelta};
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::pool::maintenance;
use mailgate_storage::partitions::{self, Right, Tables, midnight};
use mailgate_storage::{
    audit_entries, bounced_messages, bounces, email_counters, log_retention, replies,
    webhook_counters, webhook_queue,
};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::WebhookMessageId;
use mailgate_types::past::Past;

/// How many days ahead partitions are created, which leaves two weeks to fix a failure.
const AHEAD: usize = 14;

/// How many days ahead for the log: a cancelled message's row is at its scheduled time, up to 30 days ahead.
const LOG_AHEAD: usize = 35;

/// How often to check.
const EVERY: Duration = Duration::from_mins(15);

/// How often to check whether a new day has begun.
const LOOK: Duration = Duration::from_secs(1);

/// Days shown in statistics, plus one for clock differences between replicas.
const COUNTED: TimeDelta = TimeDelta::days(31);

/// How long after the schedule's last attempt a webhook may still be queued, since attempts take time.
const LATE: TimeDelta = TimeDelta::days(2);

/// Counters, audit entries or bounces removed per statement.
const BATCH: i64 = 1_000;

/// How often to check whether another replica has finished, and after how many checks to log it.
const WAIT: Duration = Duration::from_millis(100);
const TELL_EVERY: u32 = 50;

/// The partitions could not be maintained.
#[derive(Debug, thiserror::Error)]
#[error("the log's partitions can't be maintained: {0}")]
pub struct PartitionError(#[from] sqlx::Error);

/// Ensures, before the first message, that the partitions of today and the next days exist, and that the log's
/// beginning isn't too late.
pub async fn ensure(
    pool: &PgPool,
    clock: &SharedClock,
    retention_days: u32,
) -> Result<(), PartitionError> {
    let mut connection = maintenance(pool).await?;
    let wanted = days_ahead(clock.now().date_naive());
    let mut waits = 0_u32;
    while !partitions::make(&mut connection, &wanted).await? {
        if waits.is_multiple_of(TELL_EVERY) {
            tracing::info!("waiting for another replica that makes the log's partitions");
        }
        waits += 1;
        tokio::time::sleep(WAIT).await;
    }
    // A replica that is dropping partitions does this too.
    if Past::by(clock).is_known() && partitions::try_lock(&mut connection, Right::Drop).await? {
        let set_back = set_back(&mut connection, oldest(clock, retention_days)).await;
        partitions::unlock(&mut connection, Right::Drop).await?;
        set_back?;
    }
    Ok(())
}

/// Retention periods.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// How many days the log is kept.
    pub log_days: u32,
    /// How long a webhook is retried, by the schedule.
    pub webhooks: Duration,
}

/// Runs until `stop`; one replica at a time does the work.
pub async fn run(pool: PgPool, clock: SharedClock, retention: Retention, stop: CancellationToken) {
    loop {
        if let Err(error) = round(&pool, &clock, retention).await {
            trouble!(error, error, "the log's partitions can't be maintained");
        }
        if !is_due(&clock, &stop).await {
            return;
        }
    }
}

/// Waits for the next round, which comes immediately on a new day, also if the clock was set; `false` at the end.
async fn is_due(clock: &SharedClock, stop: &CancellationToken) -> bool {
    let (began, today) = (Instant::now(), clock.now().date_naive());
    while began.elapsed() < EVERY && clock.now().date_naive() == today {
        if !pause(LOOK, stop).await {
            return false;
        }
    }
    true
}

async fn round(
    pool: &PgPool,
    clock: &SharedClock,
    retention: Retention,
) -> Result<(), sqlx::Error> {
    let mut connection = maintenance(pool).await?;
    partitions::make(&mut connection, &days_ahead(clock.now().date_naive())).await?;
    if !partitions::try_lock(&mut connection, Right::Drop).await? {
        return Ok(());
    }
    let dropped = drop_old(&mut connection, clock, retention).await;
    partitions::unlock(&mut connection, Right::Drop).await?;
    dropped
}

/// The log's beginning by its retention.
fn oldest(clock: &SharedClock, retention_days: u32) -> Past {
    let kept = TimeDelta::days(retention_days.into());
    Past::by(clock).before(kept).midnight()
}

/// Sets the log's beginning back if it is later than `oldest`: a clock was wrong, and messages would end without a row
/// in the log. Days before the first partition are gone.
async fn set_back(connection: &mut PgConnection, oldest: Past) -> Result<(), sqlx::Error> {
    let Some(first) = partitions::first_day(connection).await? else {
        return Ok(());
    };
    let since = oldest.moment().max(midnight(first));
    if let Some(before) = log_retention::set_back(connection, since).await? {
        tracing::warn!(%before, %since, "the log was said to begin later than it should, as after a clock that was wrong: its beginning is set back");
    }
    Ok(())
}

/// Drops partitions that are too old. Days with queued webhooks stay for as long as the schedule retries these, and no
/// longer: requeueing old ones for a failing endpoint doesn't extend retention. A message still waiting in the spool is
/// ended without a log row.
async fn drop_old(
    connection: &mut PgConnection,
    clock: &SharedClock,
    retention: Retention,
) -> Result<(), sqlx::Error> {
    if !Past::by(clock).is_known() {
        return Ok(());
    }
    let oldest = oldest(clock, retention.log_days);
    set_back(connection, oldest).await?;
    let queued = webhook_queue::oldest(connection).await?;
    let queued = queued.and_then(WebhookMessageId::moment);
    let schedule = TimeDelta::from_std(retention.webhooks).unwrap_or(TimeDelta::MAX);
    let tried = Past::by(clock).before(schedule.checked_add(&LATE).unwrap_or(schedule));
    let webhooks = queued.map_or(oldest, |queued| {
        oldest.or_earlier(queued.max(tried.moment())).midnight()
    });
    // First, so that no report counts rows that are about to be dropped.
    log_retention::keep_since(connection, oldest).await?;
    // Before their days are dropped, which an attempt would recreate.
    while webhook_queue::remove_before(connection, webhooks, BATCH).await? > 0 {}
    let mut dropped = partitions::drop_before(connection, Tables::Log, oldest).await?;
    dropped += partitions::drop_before(connection, Tables::Webhooks, webhooks).await?;
    if dropped > 0 {
        tracing::info!(days = dropped, "old log partitions were dropped");
    }
    while audit_entries::remove_before(connection, oldest, BATCH).await? > 0 {}
    while bounced_messages::remove_before(connection, oldest, BATCH).await? > 0 {}
    while bounces::remove_before(connection, oldest, BATCH).await? > 0 {}
    while replies::remove_before(connection, oldest, BATCH).await? > 0 {}
    // The webhook counters cover what can be listed, so they are removed with it.
    while webhook_counters::remove_before(connection, webhooks, BATCH).await? > 0 {}
    let shown = Past::by(clock).before(COUNTED).midnight();
    while email_counters::remove_old(connection, oldest.min(shown), BATCH).await? > 0 {}
    Ok(())
}

/// The days to create partitions for, including yesterday: messages opened before midnight close after it.
fn days_ahead(today: NaiveDate) -> Vec<(Tables, NaiveDate)> {
    let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
    let of = |tables: Tables| {
        let ahead = match tables {
            Tables::Log => LOG_AHEAD,
            Tables::Webhooks => AHEAD,
        };
        let days = first.iter_days().take(ahead + 2);
        days.map(move |day| (tables, day))
    };
    Tables::ALL.into_iter().flat_map(of).collect()
}
