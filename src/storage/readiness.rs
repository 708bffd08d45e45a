//! Whether the database can be used: the one place that knows it, and that logs an outage, its cause and its end. The
//! database is checked once a second, however often the state is read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::time::timeout;

use super::outage::Outage as _;
use super::pool;

/// How long the pool may take before the database is probed directly.
const SOON: Duration = Duration::from_secs(1);

/// How long each further step of a check may take.
const LATE: Duration = Duration::from_secs(5);

/// The result of the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The database answers, and its tables are there.
    Yes,
    /// Its tables are older than this program.
    NotMigrated,
    /// It doesn't answer.
    Unreachable,
}

/// Holds the result of the last check.
#[derive(Debug, Clone)]
pub struct Readiness {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    /// The state, and since when it holds.
    last: Mutex<(Ready, Instant)>,
}

impl Readiness {
    /// Starts with a database that was just available, with its tables.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let last = Mutex::new((Ready::Yes, Instant::now()));
        Self {
            inner: Arc::new(Inner { pool, last }),
        }
    }

    /// The result of the last check, without waiting.
    #[must_use]
    pub fn last(&self) -> Ready {
        self.state().0
    }

    fn state(&self) -> MutexGuard<'_, (Ready, Instant)> {
        self.inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the database, and logs a change.
    pub async fn look(&self) {
        let (ready, cause) = match self.probe().await {
            Ok(true) => (Ready::Yes, None),
            Ok(false) => (Ready::NotMigrated, None),
            Err(cause) => (Ready::Unreachable, Some(cause)),
        };
        let (before, since) = *self.state();
        if before == ready {
            if let Some(cause) = cause {
                tracing::debug!(cause, "the database still can't be used");
            }
            return;
        }
        *self.state() = (ready, Instant::now());
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
            Ready::Unreachable => {
                tracing::error!(
                    cause,
                    "the database can't be used; nothing more is logged about it until it is back"
                );
            }
        }
    }

    /// Whether the tables are there; else why the database can't be used. The pool retries silently and hides the
    /// cause, so if it doesn't answer soon the database is probed directly.
    async fn probe(&self) -> Result<bool, String> {
        let pool = &self.inner.pool;
        let mut asked = std::pin::pin!(pool::is_ready(pool));
        if let Ok(answer) = timeout(SOON, asked.as_mut()).await {
            match answer {
                // A connection of the pool broke; the next one may be good.
                Err(error) if error.is_outage() => {}
                answer => return answer.map_err(|error| error.to_string()),
            }
            self.reach().await?;
            let again = timeout(LATE, pool::is_ready(pool)).await;
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
