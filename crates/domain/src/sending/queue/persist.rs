//! Persists the outcome of a message, riding out database failures.

pub(crate) mod close;
mod defer;
mod withdraw;

use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use mailgate_storage::database::outage::Outage;

/// Attempts to write an outcome while the caller waits.
pub(in crate::sending) const WRITE_ATTEMPTS: u32 = 5;

/// Why a message is not stored.
#[derive(Debug, thiserror::Error)]
pub(in crate::sending) enum StoreError {
    /// Its subscriber's queue quota is full.
    #[error("the subscriber's queue quota is full")]
    QuotaFull,
    /// Another process has ended this one and taken the message over.
    #[error("this process was ended by another one")]
    Ended,
    /// The database's error; nothing is stored.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The database's error on a commit that may have succeeded.
    #[error("the response to a commit was lost: {0}")]
    Unanswered(#[source] sqlx::Error),
}

impl StoreError {
    /// The meaning of a failed commit.
    pub(in crate::sending) fn of_commit(error: sqlx::Error) -> Self {
        // A backend that is terminated while it waits for a standby reports so, and has committed; one that panics may
        // have.
        let severity = (error.as_database_error())
            .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
            .map(PgDatabaseError::severity);
        let is_rolled_back = severity == Some(PgSeverity::Error) && !error.is_outage();
        if is_rolled_back {
            Self::Database(error)
        } else {
            Self::Unanswered(error)
        }
    }
}

impl Outage for StoreError {
    fn is_outage(&self) -> bool {
        matches!(self, Self::Database(error) | Self::Unanswered(error) if error.is_outage())
    }
}

/// A tenth of a second, doubled with each attempt, up to half a minute.
pub(in crate::sending) fn pause_before(attempt: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    (Duration::from_millis(100) * doubled.min(300)).min(Duration::from_secs(30))
}
