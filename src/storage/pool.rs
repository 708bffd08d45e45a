//! Connections to Postgres, and the migrations.

use std::str::FromStr;
use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::ConnectOptions as _;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::config::DatabaseSettings;

static MIGRATIONS: Migrator = sqlx::migrate!();

/// How long a caller waits for a free connection before it is told that the gateway is overloaded.
const ACQUIRE: Duration = Duration::from_secs(5);

/// The database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The address is none.
    #[error("database.url can't be read: {0}")]
    Url(#[source] sqlx::Error),
    /// Nobody answers there, or refuses.
    #[error("the database at database.url can't be reached: {0}")]
    Connect(#[source] sqlx::Error),
    /// A migration failed.
    #[error("the database's tables can't be brought up to date: {0}")]
    Migrate(#[from] MigrateError),
}

/// Connects, and proves it by one round trip.
///
/// # Errors
///
/// [`PoolError`] with a text for the operator.
pub async fn connect(settings: &DatabaseSettings) -> Result<PgPool, PoolError> {
    let options =
        PgConnectOptions::from_str(settings.url.expose_secret()).map_err(PoolError::Url)?;
    let options = options.application_name("mailgate");
    let connected = PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(ACQUIRE)
        .connect_with(options.clone())
        .await;
    match connected {
        // The pool has tried again and again, and keeps to itself why: one more attempt tells.
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

/// Brings the tables up to date. Any number of processes may do it at once: an advisory lock lets
/// them in one after the other.
///
/// # Errors
///
/// When a migration fails, or the database is ahead of this program.
pub async fn migrate(pool: &PgPool) -> Result<(), PoolError> {
    MIGRATIONS.run(pool).await.map_err(PoolError::from)
}

/// Whether the database answers and has at least this program's tables.
///
/// # Errors
///
/// What the database said.
pub async fn is_ready(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let newest = MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0);
    let applied: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .fetch_one(pool)
            .await?;
    Ok(applied.unwrap_or(0) >= newest)
}
