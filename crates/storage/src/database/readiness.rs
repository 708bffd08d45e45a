//! Whether the database can be used for sending: it can be written, this process's lease is confirmed, and the log has
//! its partitions. The only place that determines this, and that logs an outage, its cause and its end. The database is
//! checked once a second, however often the state is read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use sqlx::PgPool;
use tokio::time::timeout;

use super::outage::Outage as _;
use super::pool;
use super::tables::{self, Able};
use crate::partitions;
use mailgate_types::clock::SharedClock;
use mailgate_types::lease::Lease;

/// How long the pool may take before the database is probed directly.
const SOON: Duration = Duration::from_secs(1);

/// How long each further step of a check may take.
const LATE: Duration = Duration::from_secs(5);

/// How long after another problem an unconfirmed lease is attributed to it.
const AFTER_TROUBLE: Duration = Duration::from_secs(10);

/// The advice for a read-only database.
pub const READ_ONLY: &str = "it is read-only: default_transaction_read_only is on, as managed databases set it when \
                             their disk is full; make room, then switch it off";

/// The result of the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The database can be used.
    Yes,
    /// Its tables are older than this program.
    NotMigrated,
    /// It can't be used.
    Unable(Unable),
}

/// Why the database can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unable {
    /// It doesn't respond.
    Unreachable,
    /// It accepts no writes.
    ReadOnly,
    /// It has not confirmed this process's lease.
    NoLease,
    /// The log lacks the partition of today or tomorrow.
    NoPartition,
}

/// The result of a check: whether the tables are there, or why the database can't be used.
pub type Found = Result<bool, Trouble>;

/// That the database can't be used.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// Why.
    pub why: Unable,
    /// The same, for the log.
    pub cause: String,
}

/// Holds the result of the last check.
#[derive(Debug, Clone)]
pub struct Readiness {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    clock: SharedClock,
    lease: Lease,
    last: Mutex<Last>,
    /// Why the last renewal of the lease failed.
    not_renewed: Mutex<Option<String>>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    ready: Ready,
    since: Instant,
    /// The time of the last problem other than with the lease.
    trouble: Option<Instant>,
}

impl Trouble {
    const fn new(why: Unable, cause: String) -> Self {
        Self { why, cause }
    }
}

impl Readiness {
    /// Starts with a database that was just available, with its tables, and has granted this lease.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock, lease: Lease) -> Self {
        let last = Last {
            ready: Ready::Yes,
            since: Instant::now(),
            trouble: None,
        };
        Self {
            inner: Arc::new(Inner {
                pool,
                clock,
                lease,
                last: Mutex::new(last),
                not_renewed: Mutex::default(),
            }),
        }
    }

    /// The result of the last check, without waiting.
    #[must_use]
    pub fn last(&self) -> Ready {
        self.state().ready
    }

    /// Records why the lease could not be renewed; `None`: it was renewed.
    pub fn lease_renewed(&self, failure: Option<&sqlx::Error>) {
        let mut not_renewed =
            (self.inner.not_renewed.lock()).unwrap_or_else(PoisonError::into_inner);
        *not_renewed = failure.map(ToString::to_string);
    }

    fn state(&self) -> MutexGuard<'_, Last> {
        self.inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the result of a check, and logs a change.
    pub fn note(&self, found: Found) {
        let (ready, cause) = match found {
            Ok(true) => (Ready::Yes, None),
            Ok(false) => (Ready::NotMigrated, None),
            Err(trouble) => (Ready::Unable(trouble.why), Some(trouble.cause)),
        };
        let Some(since) = self.change(ready) else {
            if let Some(cause) = cause {
                tracing::debug!(cause, "the database still can't be used");
            }
            return;
        };
        match ready {
            Ready::Yes => {
                let seconds = since.elapsed().as_secs();
                tracing::info!(seconds, "the database is back");
            }
            Ready::NotMigrated => {
                tracing::error!(
                    "the database's tables are older than this program: run mailgate migrate"
                );
            }
            Ready::Unable(_) => {
                tracing::error!(
                    cause,
                    "the database can't be used; nothing more is logged about it until it is back"
                );
            }
        }
    }

    /// Records the state; if it has changed, returns the start of the previous one.
    fn change(&self, ready: Ready) -> Option<Instant> {
        let mut last = self.state();
        let is_of_trouble = ready == Ready::Unable(Unable::NoLease)
            && last.trouble.is_some_and(|at| at.elapsed() < AFTER_TROUBLE);
        if matches!(ready, Ready::Unable(why) if why != Unable::NoLease) {
            last.trouble = Some(Instant::now());
        }
        if last.ready == ready || is_of_trouble && last.ready != Ready::Yes {
            return None;
        }
        last.ready = ready;
        Some(std::mem::replace(&mut last.since, Instant::now()))
    }

    /// Checks the database.
    pub async fn probe(&self) -> Found {
        let unreachable = |cause| Trouble::new(Unable::Unreachable, cause);
        match self.able().await.map_err(unreachable)? {
            Able::Neither => return Ok(false),
            Able::Read => return Err(Trouble::new(Unable::ReadOnly, READ_ONLY.to_owned())),
            Able::Write => {}
        }
        let lease = &self.inner.lease;
        if !lease.is_fresh() && !lease.has_ended() {
            let not_renewed =
                (self.inner.not_renewed.lock()).unwrap_or_else(PoisonError::into_inner);
            let why = not_renewed.as_deref().unwrap_or("no answer yet");
            let cause = format!("it has not confirmed this process's lease for seconds: {why}");
            return Err(Trouble::new(Unable::NoLease, cause));
        }
        let missing = self.missing_partition().await.map_err(unreachable)?;
        missing.map_or(Ok(true), |day| {
            let cause = format!("there is no partition of the log and the webhooks for {day}");
            Err(Trouble::new(Unable::NoPartition, cause))
        })
    }

    /// The first day, of today and tomorrow, for which the log has no partition.
    async fn missing_partition(&self) -> Result<Option<NaiveDate>, String> {
        let today = self.inner.clock.now().date_naive();
        let looking = async {
            let mut connection = self.inner.pool.acquire().await?;
            partitions::missing_soon(&mut connection, today).await
        };
        match timeout(LATE, looking).await {
            Ok(missing) => missing
                .map(|missing| missing.first().copied())
                .map_err(|error| error.to_string()),
            Err(_) => Err(self.used_up()),
        }
    }

    /// The database's abilities, or why it can't be used. The pool retries silently and hides the cause, so if it
    /// doesn't respond soon the database is probed directly.
    async fn able(&self) -> Result<Able, String> {
        let pool = &self.inner.pool;
        let mut asked = std::pin::pin!(tables::able(pool));
        if let Ok(answer) = timeout(SOON, asked.as_mut()).await {
            match answer {
                // A connection of the pool broke; the next one may be good.
                Err(error) if error.is_outage() => {}
                answer => return answer.map_err(|error| error.to_string()),
            }
            self.reach().await?;
            let again = timeout(LATE, tables::able(pool)).await;
            return again.map_or_else(
                |_| Err(self.used_up()),
                |answer| answer.map_err(|error| error.to_string()),
            );
        }
        self.reach().await?;
        match timeout(LATE, asked).await {
            Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => Err(self.used_up()),
            Ok(answer) => answer.map_err(|error| error.to_string()),
        }
    }

    /// Connects outside the pool.
    async fn reach(&self) -> Result<(), String> {
        match timeout(LATE, pool::reach(&self.inner.pool)).await {
            Ok(reached) => reached.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} seconds", LATE.as_secs())),
        }
    }

    fn used_up(&self) -> String {
        let connections = self.inner.pool.options().get_max_connections();
        format!(
            "all {connections} connections of database.max_connections have been in use for seconds"
        )
    }
}
