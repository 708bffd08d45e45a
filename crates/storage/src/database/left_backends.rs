//! Database backends that this process has abandoned in the middle of a statement. One may still be about to commit,
//! for as long as a standby doesn't respond; once it has ended, its result is final.
//! The user that logged in may see and terminate its own backends; a role that it has set may not. So these queries run
//! without that role.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use sqlx::{Executor as _, PgConnection};

/// Resets the role that a login has set. After an error the connection must be given up, or its transaction rolled
/// back, which ends this too.
const AS_LOGIN: &str = "SET ROLE NONE";

/// Restores the role.
const AS_ROLE: &str = "RESET ROLE";

/// How long to wait for a backend, in milliseconds.
const ENDS_WITHIN: i64 = 3_000;

/// A backend: its process, and when it began, since process ids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    process: i32,
    began_at: DateTime<Utc>,
}

/// The backend of a connection.
pub async fn backend_of(connection: &mut PgConnection) -> Result<Backend, sqlx::Error> {
    connection.execute(AS_LOGIN).await?;
    let backend = sqlx::query!(
        r#"SELECT pid AS "process!", backend_start AS "began_at!"
           FROM pg_stat_activity WHERE pid = pg_backend_pid()"#
    )
    .fetch_one(&mut *connection)
    .await?;
    connection.execute(AS_ROLE).await?;
    Ok(Backend {
        process: backend.process,
        began_at: backend.began_at,
    })
}

/// The abandoned backends; clones share them.
#[derive(Debug, Clone, Default)]
pub struct LeftBackends(Arc<Mutex<Vec<Backend>>>);

impl LeftBackends {
    /// Adds a backend.
    pub fn add(&self, backend: Backend) {
        self.with(|left| left.push(backend));
    }

    /// Terminates all of them.
    ///
    /// # Errors
    /// The database's error, or that one has not ended yet: they stay in the list then, and the connection must be
    /// given up, or its transaction rolled back.
    pub async fn end(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let left = self.with(|left| left.clone());
        if left.is_empty() {
            return Ok(());
        }
        connection.execute(AS_LOGIN).await?;
        for backend in left {
            let has_ended = sqlx::query_scalar!(
                r#"SELECT coalesce(bool_and(pg_terminate_backend(pid, $3)), true) AS "has_ended!"
                   FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"#,
                backend.process,
                backend.began_at,
                ENDS_WITHIN,
            )
            .fetch_one(&mut *connection)
            .await?;
            if !has_ended {
                return Err(sqlx::Error::PoolTimedOut);
            }
            self.with(|left| left.retain(|other| *other != backend));
        }
        connection.execute(AS_ROLE).await?;
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<Backend>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
