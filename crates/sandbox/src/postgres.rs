//! A private Postgres for `mailgate dev` and for tests: one cluster in one folder, reachable only through a Unix
//! socket, running no longer than this process.
//!
//! The folder's layout is in `home`, finding the programs in `programs`, the process in `server`. This module knows
//! nothing about what the gateway stores in the database.

mod home;
mod programs;
mod server;
mod server_user;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::sync::{oneshot, watch};

/// Time limit for creating a database.
const CREATE_DATABASE_TIMEOUT: Duration = Duration::from_secs(30);

/// `duplicate_database` among the SQLSTATE codes in appendix A of the Postgres manual.
const DUPLICATE_DATABASE: &str = "42P04";

/// How much data a system crash may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Data checksums, and every commit is synced to disk.
    Durable,
    /// Nothing is synced: fast, for tests. A system crash may lose the cluster.
    Throwaway,
}

/// Why the private Postgres doesn't run. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No `initdb` and `postgres` on this machine.
    #[error(
        "the PostgreSQL programs (initdb, postgres) were not found in $PG_BINDIR or, where that is not set, in /usr/lib/postgresql/*/bin and PATH. \
         Install them (Debian and Ubuntu: apt-get install postgresql), or set PG_BINDIR to the folder that holds them"
    )]
    ProgramsMissing,
    /// The programs exist, but don't run under the account that the server needs.
    #[error(
        "the PostgreSQL programs in {directory} cannot be run by {account}: {reason}. \
         Install PostgreSQL where every user may run it, or point PG_BINDIR elsewhere"
    )]
    ProgramsUnusable {
        /// The folder of the programs.
        directory: PathBuf,
        /// The account.
        account: String,
        /// The error.
        reason: String,
    },
    /// Postgres refuses to run as root, and there is no other account for it.
    #[error(
        "PostgreSQL refuses to run as root, and /etc/passwd has neither a `postgres` nor a `nobody` user. \
         Add one of them, or run mailgate as an ordinary user"
    )]
    NoAccount,
    /// Another live process runs a server in this folder.
    #[error(
        "a private PostgreSQL for {directory} is already running (pid {pid}). Stop that process first, or use another folder"
    )]
    AlreadyRunning {
        /// The folder given to [`start`].
        directory: PathBuf,
        /// The process that holds the folder; 0 if unknown.
        pid: u32,
    },
    /// The cluster was created by another major version.
    #[error(
        "the database in {cluster} was made by PostgreSQL {made_by}, and the programs in {programs} are version {found}. \
         Install PostgreSQL {made_by} (or set PG_BINDIR to it), or remove the folder to begin with an empty database"
    )]
    VersionMismatch {
        /// The cluster's folder.
        cluster: PathBuf,
        /// The major version that created it.
        made_by: String,
        /// Folder of the programs found.
        programs: PathBuf,
        /// Their major version.
        found: String,
    },
    /// The server's account can't access the folder of an existing cluster.
    #[error(
        "{path} cannot be entered by {account}, who runs PostgreSQL. Give the folders above it execute permission (chmod a+x), or use another folder"
    )]
    Unreachable {
        /// The folder of the cluster.
        path: PathBuf,
        /// The account.
        account: String,
    },
    /// `initdb` failed.
    #[error("initdb failed ({reason}). The end of its log:\n{log}")]
    Initdb {
        /// How it ended.
        reason: String,
        /// The last lines of the log.
        log: String,
    },
    /// The server failed to start.
    #[error("PostgreSQL did not start ({reason}). The end of its log:\n{log}")]
    Start {
        /// How it ended.
        reason: String,
        /// The last lines of the log.
        log: String,
    },
    /// A file operation failed.
    #[error("could not {doing} {path}: {source}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path or program.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The thread that supervises the server ended without a report.
    #[error("the thread that keeps PostgreSQL ended early")]
    KeeperLost,
    /// The server rejected the statement.
    #[error("the private PostgreSQL refused: {0}")]
    Database(#[from] sqlx::Error),
    /// The server did not respond in time.
    #[error("the private PostgreSQL gave no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
}

impl PostgresError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}

/// A running server. Dropping it also stops the server, and waits for that (about 0.1 s, at most 18 s);
/// [`PrivatePostgres::stop`] does the same off the async threads. If this process is killed by any signal, the server
/// stops as well, through the parent-death signal (where `setpriv` exists).
#[derive(Debug)]
pub struct PrivatePostgres {
    pid: u32,
    socket: PathBuf,
    log: PathBuf,
    ended: watch::Receiver<Option<String>>,
}

/// Starts the server of `directory`, which is created if missing; an existing cluster is reused.
///
/// # Errors
/// Every variant of [`PostgresError`] but the last three.
pub async fn start(
    directory: &Path,
    durability: Durability,
) -> Result<PrivatePostgres, PostgresError> {
    let (ready, started) = oneshot::channel();
    let (ended, ended_receiver) = watch::channel(None);
    let owned = directory.to_owned();
    // The death signal is tied to the thread that forked, so this thread lives as long as the server.
    std::thread::Builder::new()
        .name("private-postgres".to_owned())
        .spawn(move || server::keep(&owned, durability, ready, &ended))
        .map_err(PostgresError::io("start a thread for", directory))?;
    let started = started.await.map_err(|_| PostgresError::KeeperLost)??;
    Ok(PrivatePostgres {
        pid: started.pid,
        socket: started.socket,
        log: started.log,
        ended: ended_receiver,
    })
}

impl PrivatePostgres {
    /// A `postgres://` URL of `database`, for psql, libpq's children and sqlx alike. It includes the port, so that a
    /// PGPORT in the environment has no effect.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://postgres@localhost:{}/{}?host={}",
            home::PORT,
            percent_encoded(database.as_bytes()),
            percent_encoded(self.socket.as_os_str().as_bytes()),
        )
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that holds the server's log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Creates `name` unless it exists.
    ///
    /// # Errors
    /// [`PostgresError::Database`], [`PostgresError::NoAnswer`].
    pub async fn ensure_database(&self, name: &str) -> Result<(), PostgresError> {
        tokio::time::timeout(CREATE_DATABASE_TIMEOUT, self.create_database(name))
            .await
            .map_err(|_| PostgresError::NoAnswer(CREATE_DATABASE_TIMEOUT))?
    }

    async fn create_database(&self, name: &str) -> Result<(), PostgresError> {
        let mut connection = PgConnectOptions::from_str(&self.url("postgres"))?
            .connect()
            .await?;
        let known: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(name)
            .fetch_optional(&mut connection)
            .await?;
        if known.is_none() {
            // DDL statements take no parameters; the name is quoted as an identifier.
            let statement = format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""));
            match sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut connection)
                .await
            {
                Err(sqlx::Error::Database(refusal))
                    if refusal.code().as_deref() == Some(DUPLICATE_DATABASE) => {}
                other => {
                    other?;
                }
            }
        }
        connection.close().await?;
        Ok(())
    }

    /// Waits until the server has exited, and returns the reason: for detecting an unexpected exit.
    pub async fn died(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_default(),
            Err(_) => PostgresError::KeeperLost.to_string(),
        }
    }

    /// Stops the server: fast shutdown, then stronger signals. Returns once it has exited.
    pub async fn stop(self) {
        let dropped = tokio::task::spawn_blocking(move || drop(self)).await;
        if let Err(error) = dropped {
            tracing::warn!(%error, "the private Postgres was not stopped cleanly");
        }
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if !server::end(self.pid, &self.ended) {
            tracing::warn!(pid = self.pid, "the private Postgres did not end");
        }
    }
}

/// Percent-encodes everything but the unreserved characters (RFC 3986 §2.1).
fn percent_encoded(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut encoded = String::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
