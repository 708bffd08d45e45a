//! The queues and the mailboxes in the database, for the metrics.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgPool};

use mailgate_storage::database::{pool, transaction, wal_archive};
use mailgate_storage::mailboxes::count::{self, MailboxNumbers};
use mailgate_storage::queue_length::QueueLength;
use mailgate_storage::spool::usage::{self, Most};
use mailgate_storage::subscribers::billing;
use mailgate_storage::{
    billing_jobs, billing_notices, email_counters, payprov_events, spool, webhook_queue,
};
use mailgate_telemetry::top_subscribers::{Largest, MOST};

/// The queues in the database.
#[derive(Debug)]
pub struct Queues {
    /// The spool.
    pub spool: spool::backlog::Backlog,
    /// The subscribers with most.
    pub largest: Largest,
    /// The webhook queue.
    pub webhooks: webhook_queue::backlog::Backlog,
    /// Notices to subscribers.
    pub notices: QueueLength,
    /// Billing's; `None` without billing, when no worker processes them.
    pub billing: Option<BillingQueues>,
    /// Counter changes that are not folded yet.
    pub report_changes: u32,
}

/// Work to be done at the payment provider, and problems there.
#[derive(Debug)]
pub struct BillingQueues {
    /// Its events.
    pub events: QueueLength,
    /// Jobs to be done there.
    pub jobs: QueueLength,
    /// Subscribers with more than one living subscription.
    pub doubly_charged: u32,
}

impl Queues {
    /// Measures all of them in one transaction.
    pub async fn measure(
        pool: &PgPool,
        is_billed: bool,
        most: &Most,
        now: DateTime<Utc>,
    ) -> Result<Self, sqlx::Error> {
        let mut connection = transaction::begin(pool).await?;
        pool::force_index_scans(&mut connection).await?;
        let queues = Self {
            spool: spool::backlog::measure(&mut connection).await?,
            largest: largest(&mut connection, most, now).await?,
            webhooks: webhook_queue::backlog::measure(&mut connection).await?,
            notices: billing_notices::waiting(&mut connection).await?,
            billing: if is_billed {
                let doubly_charged = billing::doubly_charged(&mut connection).await?;
                Some(BillingQueues {
                    events: payprov_events::waiting(&mut connection).await?,
                    jobs: billing_jobs::waiting(&mut connection).await?,
                    doubly_charged: doubly_charged.count,
                })
            } else {
                None
            },
            report_changes: email_counters::changes(&mut connection).await?,
        };
        connection.rollback().await?;
        Ok(queues)
    }
}

/// For how many seconds the next archived segment of the write-ahead log has been due; `None` if none is.
pub async fn wal_archive_overdue(pool: &PgPool) -> Result<Option<f64>, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    wal_archive::overdue_seconds(&mut connection).await
}

/// The subscribers with the most messages waiting now, and sent or failed in the current and previous hour.
async fn largest(
    connection: &mut PgConnection,
    most: &Most,
    now: DateTime<Utc>,
) -> Result<Largest, sqlx::Error> {
    let stored = usage::largest(connection, most, MOST).await?;
    let counted = email_counters::largest(connection, now - TimeDelta::hours(2), MOST).await?;
    Ok(Largest {
        sent: counted.sent,
        failed: counted.failed,
        waiting: stored.messages,
        waiting_share: stored.shares,
    })
}

/// Counts the mailboxes of each provider.
pub async fn count_mailboxes(pool: &PgPool) -> Result<[MailboxNumbers; 2], sqlx::Error> {
    let mut connection = transaction::begin(pool).await?;
    pool::force_index_scans(&mut connection).await?;
    let numbers = count::count_all(&mut connection).await?;
    connection.rollback().await?;
    Ok(numbers)
}
