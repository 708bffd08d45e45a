//! Connections to Postgres, and the migrations.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgExecutor,
    Postgres, SqlSafeStr as _, Transaction,
};

use super::error_class::is_refusal;
use super::left_backends::{Backend, LeftBackends, backend_of};
use super::transaction;
use super::url;
use super::url::UrlError;
use mailgate_settings::DatabaseSettings;
use mailgate_types::clock::SharedClock;
use mailgate_types::suspend_aware_instant::SuspendAwareInstant;

/// How long a caller waits for a free connection before it is refused as an overload.
const ACQUIRE: Duration = Duration::from_secs(5);

/// How long a statement waits for a lock, and how long a transaction may be idle before the database ends it: its
/// process is gone, or hangs.
pub(crate) const LOCK_SECONDS: u64 = 5;
const IDLE_IN_TRANSACTION_SECONDS: u64 = 10;

/// How long maintenance may take that alters tables or scans much of them.
pub(crate) const MAINTENANCE_SECONDS: u64 = 3_600;

/// A connection used this recently is assumed to be alive without a ping.
const FRESH: Duration = Duration::from_secs(1);

/// Why the database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The URL is not valid.
    #[error("database.url can't be read: {0}")]
    Url(#[from] UrlError),
    /// There is no server, or it refuses.
    #[error("the database at database.url can't be reached: {0}; {advice}", advice = advice(.0))]
    Connect(#[source] sqlx::Error),
    /// A newer version has created tables that this one doesn't know.
    #[error(
        "the database at database.url belongs to a newer mailgate: its migration {0} is unknown to this one, {version}; run the newer version, or restore a backup from before the upgrade",
        version = env!("CARGO_PKG_VERSION")
    )]
    Newer(i64),
    /// The tables were not created by this program's migrations.
    #[error(
        "the database at database.url was not made by this mailgate: its migration {0} differs; give database.url a database of mailgate's own, or run the version that made this one"
    )]
    Other(i64),
    /// The tables are older than this program's, or there are none.
    #[error(
        "the database at database.url doesn't have this version's tables yet; mailgate migrate makes them, and so does a gateway when it starts"
    )]
    Older,
    /// Text would be stored without its encoding, or can't be stored at all.
    #[error(
        "the database at database.url keeps texts as {0}, and mail needs UTF8: make another by createdb --template=template0 --encoding=UTF8 --locale=C.UTF-8, and name it in database.url (what is in this one comes along by pg_dump and pg_restore)"
    )]
    Encoding(String),
    /// A migration failed.
    #[error(
        "the database's tables can't be brought up to date: {0}; the step that failed changed nothing: fix what it names, and start again"
    )]
    Migrate(#[source] MigrateError),
}

impl From<MigrateError> for PoolError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) => Self::Newer(version),
            MigrateError::VersionMismatch(version) => Self::Other(version),
            error => Self::Migrate(error),
        }
    }
}

/// The advice for an unreachable database, by the error (SQLSTATE, Appendix A of the manual).
#[must_use]
pub fn advice(error: &sqlx::Error) -> &'static str {
    if let Some(advice) = url::certificate_advice(error) {
        return advice;
    }
    let code = match error {
        sqlx::Error::Database(error) => error.code().unwrap_or_default(),
        sqlx::Error::Io(_) => {
            return "start Postgres there, or give database.url the host and port where it listens";
        }
        sqlx::Error::PoolTimedOut => {
            return "see whether a firewall drops what is sent there, or give database.url another host";
        }
        sqlx::Error::Tls(_) => {
            return "turn TLS on there (ssl = on), or give database.url the sslmode and the files that the server asks for";
        }
        _ => return "see what Postgres has written into its own log",
    };
    match code.as_ref() {
        "28P01" | "28000" => {
            "give database.url a user that the server accepts, with its password (createuser creates one, pg_hba.conf \
             says who may connect)"
        }
        "3D000" => "make it with createdb, or name another in database.url",
        "42501" => "give database.url a user that may connect to it",
        "53300" => "raise max_connections of Postgres, or lower database.max_connections",
        "57P03" => "it is starting or ending: try again shortly",
        _ => "see what Postgres has written into its own log",
    }
}

/// Connects, and verifies it with one round trip.
///
/// # Errors
///
/// [`PoolError`] with a text for the operator.
pub async fn connect(settings: &DatabaseSettings) -> Result<PgPool, PoolError> {
    let options = url::read(settings.url.expose_secret())?.application_name("mailgate");
    let bounds = bounds(settings.statement.as_secs(), LOCK_SECONDS);
    let connected = PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(ACQUIRE)
        .after_connect(move |connection, _| {
            let bounds = bounds.clone();
            Box::pin(async move {
                connection.execute(AssertSqlSafe(bounds)).await?;
                Ok(())
            })
        })
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_with(options.clone())
        .await;
    match connected {
        // The pool retries silently and hides the cause: one more attempt shows it.
        Err(sqlx::Error::PoolTimedOut) => {
            let attempt = tokio::time::timeout(ACQUIRE, options.connect()).await;
            let reason = attempt.ok().and_then(Result::err);
            Err(PoolError::Connect(
                reason.unwrap_or(sqlx::Error::PoolTimedOut),
            ))
        }
        connected => connected.map_err(PoolError::Connect),
    }
}

/// Closes a command's connections properly: Postgres logs those that just break.
pub async fn close(pool: &PgPool) {
    // Don't wait for one that hangs.
    let _ = tokio::time::timeout(ACQUIRE, pool.close()).await;
}

/// Connects outside the pool, for the database's own error.
pub async fn reach(pool: &PgPool) -> Result<(), sqlx::Error> {
    PgConnection::connect_with(&pool.connect_options())
        .await?
        .close()
        .await
}

/// A connection outside the pool for long operations: it may run for an hour, and wait as long for a lock.
pub async fn maintenance(pool: &PgPool) -> Result<PgConnection, sqlx::Error> {
    let mut connection = pool.acquire().await?.detach();
    let bounds = bounds(MAINTENANCE_SECONDS, MAINTENANCE_SECONDS);
    connection.execute(AssertSqlSafe(bounds)).await?;
    Ok(connection)
}

/// The limits of a connection, so that nothing waits forever. The server detects a vanished client within a minute and
/// releases its locks. JIT and parallel workers are off: every statement is short, and since indexes are enforced by
/// disabling sequential scans, a small table without an index gets a cost so high that compiling, or starting workers,
/// would take hundreds of times as long as the statement itself.
fn bounds(statement: u64, lock: u64) -> String {
    format!(
        "SET statement_timeout = '{statement}s'; SET lock_timeout = '{lock}s';
         SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS}s';
         SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
         SET jit = off; SET max_parallel_workers_per_gather = 0"
    )
}

/// Until the end of its transaction, a connection uses index scans in index order, and no plan that first reads a whole
/// table. The planner's statistics of a queue date from the last analyze, and the queue may have grown to millions
/// since.
pub async fn force_index_scans(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection
        .execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
             SET LOCAL enable_sort = off",
        )
        .await?;
    Ok(())
}

/// Takes over the database's time.
pub async fn synchronize(pool: &PgPool, clock: &SharedClock) -> Result<(), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let asked = SuspendAwareInstant::now();
    let reading = self::clock(&mut *connection).await?;
    clock.synchronize(reading, asked);
    Ok(())
}

/// The database's clock.
pub async fn clock(executor: impl PgExecutor<'_>) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar("SELECT clock_timestamp()")
        .fetch_one(executor)
        .await
}

/// Planning a statement over all partitions takes longer than running it, so each is planned once, and chooses its
/// partitions when it runs. Index scans only, as below; and of two indexes the one that reads fewer rows, since nothing
/// else has a cost. With the usual costs the primary key wins in partitions where it is lower than the matching index:
/// then a whole day is read, and nearly nothing of it kept.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
                        SET LOCAL plan_cache_mode = force_generic_plan;
                        SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
                        SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
                        SET LOCAL random_page_cost = 1; SET LOCAL cpu_tuple_cost = 1;
                        SET LOCAL cpu_operator_cost = 0";

/// A read-only transaction that sees one state of the database from its first statement to its end.
pub async fn snapshot(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    transaction::begin_with(pool, SNAPSHOT.into_sql_str()).await
}

/// As [`snapshot`], with this timeout for statements.
pub async fn snapshot_within(
    pool: &PgPool,
    statement: Duration,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let milliseconds = statement.as_millis().max(1);
    let begin = format!("{SNAPSHOT}; SET LOCAL statement_timeout = {milliseconds}");
    transaction::begin_with(pool, AssertSqlSafe(begin).into_sql_str()).await
}

/// A plan made while a table is empty must still be good once it has filled up: it must use indexes.
const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                            SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A connection outside the pool, for a few statements that run all the time: each is planned once, whereas Postgres
/// would otherwise plan statements over arrays each time.
#[derive(Debug)]
pub struct DedicatedConnection {
    pool: PgPool,
    /// The connection, and when it was last used.
    open: Option<(Instant, PgConnection)>,
    setup: &'static str,
    /// Always connects by itself, never with a connection taken from the pool.
    is_beside: bool,
    /// Collects backends abandoned in the middle of a statement: they are terminated before the next one does anything.
    left: Option<LeftBackends>,
    /// The current connection's backend, if they are collected.
    backend: Option<Backend>,
}

/// As [`PLANNED_ONCE`], and commits don't wait for the disk.
const UNHURRIED: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                         SET enable_hashjoin = off; SET enable_mergejoin = off;
                         SET synchronous_commit = off";

/// As [`UNHURRIED`], for statements that read everything that a long snapshot keeps of a queue.
const PATIENT: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                       SET enable_hashjoin = off; SET enable_mergejoin = off;
                       SET synchronous_commit = off; SET statement_timeout = '600s';
                       SET lock_timeout = '5s'; SET jit = off;
                       SET max_parallel_workers_per_gather = 0";

/// As [`PLANNED_ONCE`], with short timeouts.
const PROMPT: &str = "SET plan_cache_mode = force_generic_plan; SET statement_timeout = '3s';
                      SET lock_timeout = '2s'";

/// Abandons a backend when dropped.
struct UnderWay<'a>(Option<(&'a LeftBackends, Backend)>);

impl UnderWay<'_> {
    /// Nothing is in progress any more.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some((left, backend)) = self.0 {
            left.add(backend);
        }
    }
}

impl DedicatedConnection {
    /// Connects on first use.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            open: None,
            setup: PLANNED_ONCE,
            is_beside: false,
            left: None,
            backend: None,
        }
    }

    /// As [`DedicatedConnection::new`], for statements of which only one may be in progress.
    #[must_use]
    pub fn one_at_a_time(pool: PgPool, left: LeftBackends) -> Self {
        Self {
            left: Some(left),
            ..Self::new(pool)
        }
    }

    /// As [`DedicatedConnection::new`], for statements that must not wait for a connection of the pool, nor for long.
    #[must_use]
    pub fn beside(pool: PgPool) -> Self {
        Self {
            setup: PROMPT,
            is_beside: true,
            ..Self::new(pool)
        }
    }

    /// As [`DedicatedConnection::new`], for data that may be lost if the database itself crashes, such as leases: its
    /// commits don't wait for the disk.
    #[must_use]
    pub fn async_commit(pool: PgPool) -> Self {
        Self {
            setup: UNHURRIED,
            ..Self::new(pool)
        }
    }

    /// As [`DedicatedConnection::async_commit`], for statements that may take minutes. It is meant to be dropped
    /// between them, and isn't taken from the pool.
    #[must_use]
    pub fn patient(pool: PgPool) -> Self {
        Self {
            setup: PATIENT,
            is_beside: true,
            ..Self::new(pool)
        }
    }

    /// Runs statements. After an error, or if the caller is cancelled, the connection is replaced by a new one; after
    /// a refusal it is kept.
    pub async fn run<T>(
        &mut self,
        statements: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut connection = self.take().await?;
        let under_way = UnderWay(self.left.as_ref().zip(self.backend));
        let result = statements(&mut connection).await;
        if result.as_ref().err().is_none_or(is_refusal) {
            under_way.ended();
            self.open = Some((Instant::now(), connection));
        }
        result
    }

    async fn take(&mut self) -> Result<PgConnection, sqlx::Error> {
        if self.pool.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        if let Some((since, mut connection)) = self.open.take()
            && (since.elapsed() < FRESH || connection.ping().await.is_ok())
        {
            return Ok(connection);
        }
        let mut connection = if self.is_beside {
            let options = self.pool.connect_options();
            let connected = tokio::time::timeout(ACQUIRE, options.connect()).await;
            connected.unwrap_or(Err(sqlx::Error::PoolTimedOut))?
        } else {
            self.pool.acquire().await?.detach()
        };
        connection.execute(self.setup).await?;
        if let Some(left) = &self.left {
            left.end(&mut connection).await?;
            self.backend = Some(backend_of(&mut connection).await?);
        }
        Ok(connection)
    }
}
