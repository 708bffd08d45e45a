//! Metrics that have to be asked for: every 15 seconds, whoever scrapes and how often.

use std::time::{Duration, Instant};

use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::spool::backlog::{self, Backlog};
use crate::types::clock::SharedClock;

/// How often it asks.
const EVERY: Duration = Duration::from_secs(15);

/// How long the database may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until `stop`.
pub async fn run(
    pool: PgPool,
    clock: SharedClock,
    handle: PrometheusHandle,
    stop: CancellationToken,
) {
    loop {
        connections(&pool);
        let asked = timeout(PATIENCE, ask(&pool)).await;
        let asked = asked.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        gauge!("mailgate_database_up").set(if asked.is_ok() { 1.0 } else { 0.0 });
        match asked {
            Ok(backlog) => show(&backlog, &clock),
            Err(error) => tracing::warn!(%error, "the queues can't be measured"),
        }
        // What histograms have gathered is put into their buckets, though nobody may ever scrape.
        handle.run_upkeep();
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}

fn connections(pool: &PgPool) {
    let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
    gauge!("mailgate_database_connections", "state" => "idle").set(idle);
    gauge!("mailgate_database_connections", "state" => "used")
        .set(pool.size().saturating_sub(idle));
}

async fn ask(pool: &PgPool) -> Result<Backlog, sqlx::Error> {
    let started = Instant::now();
    let mut connection = pool.acquire().await?;
    metrics::histogram!("mailgate_database_acquire_seconds").record(started.elapsed());
    backlog::measure(&mut connection).await
}

fn show(backlog: &Backlog, clock: &SharedClock) {
    let now = clock.now();
    let since = |moment: Option<chrono::DateTime<chrono::Utc>>| {
        moment.map_or(0.0, |moment| (now - moment).as_seconds_f64().max(0.0))
    };
    gauge!("mailgate_spool_messages", "state" => "open").set(backlog.open);
    gauge!("mailgate_spool_messages", "state" => "deferred").set(backlog.deferred);
    gauge!("mailgate_spool_oldest_seconds").set(since(
        backlog.oldest.and_then(crate::types::ids::LogId::moment),
    ));
    gauge!("mailgate_spool_overdue_seconds").set(since(backlog.due_longest));
}
