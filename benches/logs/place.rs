//! The private Postgres, and the databases in it: each with a subscriber and its apps.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{Days, Utc};
use mailgate_domain::accounts::{Accounts, AppFields};
use mailgate_domain::reports::Reports;
use mailgate_sandbox::postgres::{self, Durability, PrivatePostgres};
use mailgate_settings::DatabaseSettings;
use mailgate_storage::database::{pool, tables};
use mailgate_storage::partitions;
use mailgate_types::clock::{SharedClock, SystemClock};
use mailgate_types::ids::{AppId, SubscriberId, uuid_at};
use secrecy::SecretString;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::log::{DAYS, Log};
use super::{Outcome, fill};

/// Days of partitions made ahead, as the gateway does it.
const AHEAD: u64 = 14;

/// Apps of the one subscriber.
pub const APPS: usize = 200;

/// Settings by the names of their environment variables.
pub type Environment = Vec<(String, String)>;

/// The server, and the folder that goes with it unless `BENCH_DIR` names one.
pub struct Server {
    postgres: PrivatePostgres,
    folder: PathBuf,
    _temporary: Option<TempDir>,
}

impl Server {
    /// With commits that reach the disk, as a gateway's do, or without.
    pub async fn start(name: &str, durability: Durability) -> Outcome<Self> {
        let mut builder = tempfile::Builder::new();
        builder
            .prefix("mailgate-bench-")
            // Postgres runs as a user of its own, who must reach into it.
            .permissions(Permissions::from_mode(0o755));
        let (folder, temporary) = if let Some(folder) = std::env::var_os("BENCH_DIR") {
            (PathBuf::from(folder), None)
        } else {
            let temporary = builder.tempdir()?;
            (temporary.path().to_owned(), Some(temporary))
        };
        Ok(Self {
            postgres: postgres::start(&folder.join(name), durability).await?,
            folder,
            _temporary: temporary,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a gateway on a database is set up with.
    pub fn environment(&self, database: &str) -> Environment {
        vec![
            (
                "MAILGATE__DATABASE__URL".to_owned(),
                self.postgres.url(database),
            ),
            (
                "MAILGATE__SEAL__KEYS".to_owned(),
                "bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned(),
            ),
        ]
    }

    /// A database with so many rows in its log; one that was filled before is used again.
    pub async fn log(&self, name: &str, rows: u64) -> Outcome<Log> {
        let mut log = self.database(&format!("{name}_{rows}")).await?;
        if log.apps.is_empty() {
            (log.subscriber, log.apps) = create(&log.pool, self.environment(&log.database)).await?;
            fill::fill(&log, rows).await?;
        }
        log.rows = rows;
        Ok(log)
    }

    /// A database without any, made anew.
    pub async fn empty(&self, name: &str) -> Outcome<Log> {
        let admin = PgPool::connect(&self.postgres.url("postgres")).await?;
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        sqlx::raw_sql(sqlx::AssertSqlSafe(drop))
            .execute(&admin)
            .await?;
        admin.close().await;
        let mut log = self.database(name).await?;
        (log.subscriber, log.apps) = create(&log.pool, self.environment(&log.database)).await?;
        Ok(log)
    }

    async fn database(&self, name: &str) -> Outcome<Log> {
        self.postgres.ensure_database(name).await?;
        let pool = pool::connect(&DatabaseSettings {
            url: SecretString::from(self.postgres.url(name)),
            max_connections: 4,
            statement: Duration::from_hours(1),
        })
        .await?;
        tables::migrate(&pool).await?;
        let clock: SharedClock = Arc::new(SystemClock);
        let found: Option<Uuid> = sqlx::query_scalar("SELECT id FROM subscribers")
            .fetch_optional(&pool)
            .await?;
        let apps: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM apps ORDER BY created_at, id")
            .fetch_all(&pool)
            .await?;
        Ok(Log {
            database: name.to_owned(),
            reports: Reports::new(pool.clone(), clock),
            pool,
            subscriber: SubscriberId(found.unwrap_or_else(|| uuid_at(Utc::now()))),
            apps: apps.into_iter().map(AppId).collect(),
            rows: 0,
        })
    }

    /// Ends it. A folder of its own goes with it.
    pub async fn stop(self) -> Outcome<()> {
        self.postgres.stop().await;
        Ok(())
    }
}

/// Makes the subscriber, its apps and the partitions.
async fn create(pool: &PgPool, environment: Environment) -> Outcome<(SubscriberId, Vec<AppId>)> {
    let mut connection = pool.acquire().await?;
    let today = Utc::now().date_naive();
    let first = today - Days::new(DAYS);
    for day in first.iter_days().take(usize::try_from(DAYS + AHEAD + 1)?) {
        partitions::create(&mut connection, day).await?;
    }
    let clock: SharedClock = Arc::new(SystemClock);
    let settings = mailgate_settings::load_operator(None, environment.into_iter())?;
    let (keys, limits) = (settings.seal_keys, settings.limits);
    let accounts = Accounts::new(pool.clone(), keys, clock, &limits, None, TaskTracker::new());
    let mut transaction = pool.begin().await?;
    let subscriber = accounts
        .create_subscriber(&mut transaction, "Bench", "owner@example.com")
        .await?;
    let mut apps = Vec::with_capacity(APPS);
    for number in 0..APPS {
        let fields = AppFields {
            name: format!("App {number}"),
            ..AppFields::default()
        };
        let app = accounts
            .create_app(&mut transaction, subscriber.id, &fields)
            .await?;
        apps.push(app.id);
    }
    transaction.commit().await?;
    Ok((subscriber.id, apps))
}
