//! The tables: whether they belong to this program, and the migrations that create them.

use std::io;
use std::time::{Duration, Instant};

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::pool::{LOCK_SECONDS, MAINTENANCE_SECONDS, PoolError, maintenance};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Delays between a migration's attempts to get its locks: the first, and the longest; each doubles.
const LOCK_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_LOCK_PAUSE: Duration = Duration::from_secs(30);

/// Migrates the schema. Any number of processes may do it at the same time: an advisory lock makes them take turns. A
/// lock on a table is waited for in short steps: statements queued behind a waiting migration would wait with it, those
/// of the previous release's gateways included.
///
/// # Errors
///
/// When a migration fails, or the database is ahead of this program.
pub async fn migrate(pool: &PgPool) -> Result<(), PoolError> {
    let started = Instant::now();
    let mut pause = LOCK_PAUSE;
    loop {
        let mut connection = maintenance(pool).await.map_err(PoolError::Connect)?;
        let lock = format!("SET lock_timeout = '{LOCK_SECONDS}s'");
        (connection.execute(AssertSqlSafe(lock)).await).map_err(PoolError::Connect)?;
        require_utf8(&mut connection).await?;
        let error = match MIGRATIONS.run(&mut connection).await {
            Ok(()) => return connection.close().await.map_err(PoolError::Connect),
            Err(error) => error,
        };
        // The migrations' lock is released with its connection.
        let _ = connection.close().await;
        if !is_locked(&error) || started.elapsed().as_secs() > MAINTENANCE_SECONDS {
            return Err(error.into());
        }
        tracing::warn!(%error, "the tables can't be brought up to date yet: another session holds a lock, which is waited for");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_LOCK_PAUSE);
    }
}

/// Whether another session's lock was not released in time, or a deadlock was detected (SQLSTATE `55P03`, `40P01`).
fn is_locked(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error
        .as_database_error()
        .is_some_and(|error| matches!(error.code().as_deref(), Some("55P03" | "40P01")))
}

/// Makes sure that the database stores text as UTF-8: a cluster created without a locale (`LANG`) stores any bytes, and
/// doesn't know letters.
async fn require_utf8(connection: &mut PgConnection) -> Result<(), PoolError> {
    let encoding = encoding(connection).await.map_err(PoolError::Connect)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(PoolError::Encoding(encoding))
}

async fn encoding(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("SELECT current_setting('server_encoding')")
        .fetch_one(connection)
        .await
}

/// The state of the tables relative to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// There are none; whether the user may create them.
    Missing(bool),
    /// Of an earlier version; whether the user may create the missing ones.
    Older(bool),
    /// Of this version.
    Current,
    /// A later version has created tables that this one doesn't know.
    Newer(i64),
    /// They weren't created by this program.
    Other(i64),
}

/// Checks the tables as a start would, and changes nothing.
///
/// # Errors
///
/// [`PoolError::Encoding`], or [`PoolError::Connect`]
pub async fn stand(pool: &PgPool) -> Result<Stand, PoolError> {
    let mut connection = pool.acquire().await.map_err(PoolError::Connect)?;
    require_utf8(&mut connection).await?;
    let applied: Result<Vec<(i64, Vec<u8>)>, _> = sqlx::query_as(
        "SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version",
    )
    .fetch_all(&mut *connection)
    .await;
    let applied = match applied {
        Err(error) if is_undefined_table(&error) => Vec::new(),
        applied => applied.map_err(PoolError::Connect)?,
    };
    for (version, checksum) in &applied {
        match MIGRATIONS.iter().find(|known| known.version == *version) {
            None => return Ok(Stand::Newer(*version)),
            Some(known) if *known.checksum != **checksum => return Ok(Stand::Other(*version)),
            Some(_) => {}
        }
    }
    if applied.len() == MIGRATIONS.iter().count() {
        return Ok(Stand::Current);
    }
    let may_create: bool = sqlx::query_scalar(
        "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(PoolError::Connect)?;
    Ok(if applied.is_empty() {
        Stand::Missing(may_create)
    } else {
        Stand::Older(may_create)
    })
}

/// The abilities of a database that responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Able {
    /// It has at least this program's tables, and can be written.
    Write,
    /// It has them, but accepts no writes, in this connection or in the next ones: its `default_transaction_read_only`
    /// is on, as managed databases set it when their disk is full.
    Read,
    /// Its tables are older than this program.
    Neither,
}

/// Queries the database's abilities.
pub async fn able(pool: &PgPool) -> Result<Able, sqlx::Error> {
    // A connection keeps the default from its start. Those from before the default was reset are replaced.
    for _ in 0..=pool.options().get_max_connections() {
        let mut connection = pool.acquire().await?;
        let (able, is_outdated) = ask(&mut connection).await?;
        if !is_outdated {
            return Ok(able);
        }
        connection.close().await?;
    }
    Ok(Able::Read)
}

/// The abilities, and whether they are due only to the default that this connection began with.
async fn ask(connection: &mut PgConnection) -> Result<(Able, bool), sqlx::Error> {
    let newest = MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0);
    let (applied, is_standby, is_read_only, is_so_by_default, is_from_default): (
        Option<i64>,
        bool,
        bool,
        bool,
        bool,
    ) = sqlx::query_as(
        "SELECT (SELECT max(version) FROM _sqlx_migrations WHERE success),
                pg_is_in_recovery(),
                current_setting('transaction_read_only')::boolean,
                coalesce((SELECT split_part(setting, '=', 2)::boolean
                          FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS setting
                          WHERE starts_with(setting, 'default_transaction_read_only=')
                                AND setdatabase IN (0, (SELECT oid FROM pg_database
                                                        WHERE datname = current_database()))
                                AND setrole IN (0, (SELECT oid FROM pg_roles
                                                    WHERE rolname = session_user))
                          ORDER BY setrole = 0, setdatabase = 0
                          LIMIT 1), false),
                CASE WHEN current_setting('transaction_read_only')::boolean
                     THEN (SELECT source IN ('global', 'database', 'user', 'database user') FROM pg_settings
                           WHERE name = 'default_transaction_read_only')
                     ELSE false
                END",
    )
    .fetch_one(connection)
    .await?;
    if is_standby {
        let why = "it is a standby, and takes nothing until it is promoted";
        return Err(sqlx::Error::Io(io::Error::other(why)));
    }
    let able = if applied.unwrap_or(0) < newest {
        Able::Neither
    } else if is_read_only || is_so_by_default {
        Able::Read
    } else {
        Able::Write
    };
    Ok((able, is_read_only && is_from_default && !is_so_by_default))
}

/// Makes sure that the database has at least this program's tables, and changes nothing: for commands that run beside
/// gateways, possibly of the previous release.
///
/// # Errors
///
/// [`PoolError::Older`], or [`PoolError::Connect`]
pub async fn require_tables(pool: &PgPool) -> Result<(), PoolError> {
    match able(pool).await {
        Ok(Able::Write | Able::Read) => Ok(()),
        Ok(Able::Neither) => Err(PoolError::Older),
        Err(error) if is_undefined_table(&error) => Err(PoolError::Older),
        Err(error) => Err(PoolError::Connect(error)),
    }
}

/// Whether a table doesn't exist (SQLSTATE `42P01`).
#[must_use]
pub fn is_undefined_table(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.code().as_deref() == Some("42P01"))
}
