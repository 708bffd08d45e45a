//! Metrics that need queries: every 15 seconds, and every minute for mailboxes, regardless of the scrape interval.
//! The queues' lengths are read by `domain::reports::queues`.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::{Connection as _, PgPool};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::reports::queues::{Queues, count_mailboxes, wal_archive_overdue};
use mailgate_domain::sending::accept::quota::Quota;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::queue_length::QueueLength;
use mailgate_telemetry::top_subscribers::TopSubscribers;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{LogId, WebhookMessageId};

/// How often to query.
const EVERY: Duration = Duration::from_secs(15);

/// Mailboxes are counted once in this many rounds, since they change slowly.
const MAILBOXES_EVERY: u8 = 4;

/// The pause after measuring the queues, as a multiple of its duration: while an old snapshot is open anywhere in the
/// database, counting also scans all rows that were queued since.
const SHARE: u32 = 10;

/// Timeout of the database queries.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until `stop`.
pub async fn run(
    pool: PgPool,
    clock: SharedClock,
    is_billed: bool,
    quota: Quota,
    handle: PrometheusHandle,
    top: TopSubscribers,
    stop: CancellationToken,
) {
    let mut round = 0;
    let mut rests_until = Instant::now();
    loop {
        connections(&pool);
        if let Some(ahead) = clock.ahead() {
            gauge!("mailgate_clock_offset_seconds").set(ahead.as_seconds_f64());
        }
        let answers = bounded(probe(&pool)).await;
        gauge!("mailgate_database_up").set(if answers.is_ok() { 1.0 } else { 0.0 });
        if answers.is_ok() {
            wal_archive(&pool).await;
        }
        let measured = match answers {
            Ok(()) if Instant::now() < rests_until => None,
            Ok(()) => {
                let began = Instant::now();
                let measured = Queues::measure(&pool, is_billed, quota.common(), clock.now());
                let queues = bounded(measured).await;
                rests_until = Instant::now() + began.elapsed() * SHARE;
                Some(queues)
            }
            Err(error) => Some(Err(error)),
        };
        match measured {
            None => {}
            Some(Ok(queues)) => {
                show(&queues, clock.now());
                top.set(queues.largest);
                if round == 0 {
                    mailboxes(&pool).await;
                }
                round = (round + 1) % MAILBOXES_EVERY;
            }
            Some(Err(error)) => trouble!(warn, error, "the queues can't be measured"),
        }
        // Drains the histograms into their buckets, even if they are never scraped.
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

async fn mailboxes(pool: &PgPool) {
    let counted = match bounded(count_mailboxes(pool)).await {
        Ok(counted) => counted,
        Err(error) => {
            trouble!(warn, error, "the mailboxes can't be counted");
            return;
        }
    };
    for of in counted {
        let plugin = of.plugin.as_str();
        gauge!("mailgate_mailboxes", "plugin" => plugin, "state" => "active").set(of.active);
        gauge!("mailgate_mailboxes", "plugin" => plugin, "state" => "disconnected")
            .set(of.disconnected);
    }
}

async fn wal_archive(pool: &PgPool) {
    match bounded(wal_archive_overdue(pool)).await {
        Ok(overdue) => {
            gauge!("mailgate_database_wal_archive_overdue_seconds")
                .set(overdue.unwrap_or(f64::NAN));
        }
        Err(error) => trouble!(warn, error, "the archive of the WAL can't be looked at"),
    }
}

async fn bounded<T>(
    asking: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let asked = timeout(PATIENCE, asking).await;
    asked.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

async fn probe(pool: &PgPool) -> Result<(), sqlx::Error> {
    let started = Instant::now();
    let mut connection = pool.acquire().await?;
    metrics::histogram!("mailgate_database_acquire_seconds").record(started.elapsed());
    connection.ping().await
}

fn show(queues: &Queues, now: DateTime<Utc>) {
    let since = |moment: Option<DateTime<Utc>>| {
        moment.map_or(0.0, |moment| (now - moment).as_seconds_f64().max(0.0))
    };
    let spool = &queues.spool;
    gauge!("mailgate_spool_messages", "state" => "open").set(spool.open);
    gauge!("mailgate_spool_messages", "state" => "deferred").set(spool.deferred);
    gauge!("mailgate_spool_messages", "state" => "scheduled").set(spool.scheduled);
    gauge!("mailgate_spool_oldest_seconds").set(since(spool.oldest.and_then(LogId::moment)));
    gauge!("mailgate_spool_overdue_seconds").set(since(spool.due_longest));
    let fullest = queues.largest.waiting_share.first();
    let fullest = fullest.map_or(0.0, |(_, share)| *share);
    gauge!("mailgate_waiting_fullest_ratio").set(fullest);
    let webhooks = &queues.webhooks;
    gauge!("mailgate_webhook_queue_deliveries", "state" => "ready").set(webhooks.ready);
    gauge!("mailgate_webhook_queue_deliveries", "state" => "later").set(webhooks.later);
    let oldest = webhooks.oldest.and_then(WebhookMessageId::moment);
    gauge!("mailgate_webhook_queue_oldest_seconds").set(since(oldest));
    gauge!("mailgate_webhook_queue_overdue_seconds").set(since(webhooks.due_first));
    let billing = |queue: &'static str, waiting: QueueLength| {
        gauge!("mailgate_billing_queue_entries", "queue" => queue).set(waiting.entries);
        gauge!("mailgate_billing_queue_overdue_seconds", "queue" => queue)
            .set(since(waiting.due_first));
    };
    billing("notices", queues.notices);
    if let Some(waiting) = &queues.billing {
        billing("events", waiting.events);
        billing("jobs", waiting.jobs);
        gauge!("mailgate_billing_doubly_charged_subscribers").set(waiting.doubly_charged);
    }
    gauge!("mailgate_report_changes").set(queues.report_changes);
}
