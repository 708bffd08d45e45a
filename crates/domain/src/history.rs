//! Writes a past, for `mailgate dev --seed`: the rows that a gateway would have left if it had run for some days, by the
//! statements that leave them. The gateway itself writes none of it.

mod deliveries;
mod mail;
mod refused;
mod responses;
mod trail;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgPool;

pub use self::deliveries::{PastAttempt, PastDelivery, PastEvent};
pub use self::mail::{PastEnd, PastMessage, ScheduledMessage};
pub use self::refused::PastUse;
pub use self::responses::{PastBounce, PastReply};
pub use mailgate_storage::bounces::NewBounce;
pub use mailgate_storage::email_attempts::LoggedAttempt;
use mailgate_storage::partitions::{self, Tables};
pub use mailgate_storage::refusals::Refused;
pub use mailgate_storage::spool::Opening;

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The database's error.
    #[error("the past can't be written: {0}")]
    Database(#[from] sqlx::Error),
    /// Something listed isn't stored, since its app, its endpoint or its listener isn't there.
    #[error("the past can't be written: {0} belongs to nothing that is there")]
    Nowhere(&'static str),
}

/// The database whose past is written.
#[derive(Debug, Clone)]
pub struct History {
    pool: PgPool,
    /// The present, before which all of it lies.
    now: DateTime<Utc>,
}

impl History {
    /// The past before `now`.
    #[must_use]
    pub const fn new(pool: PgPool, now: DateTime<Utc>) -> Self {
        Self { pool, now }
    }

    /// Creates the missing partitions of the days since `first`. Days that the log no longer goes back to get none.
    pub async fn make_days(&self, first: NaiveDate) -> Result<(), HistoryError> {
        let today = self.now.date_naive();
        let days = || first.iter_days().take_while(|day| *day <= today);
        let wanted: Vec<_> = (Tables::ALL.into_iter())
            .flat_map(|tables| days().map(move |day| (tables, day)))
            .collect();
        Ok(partitions::make_now(&self.pool, &wanted).await?)
    }
}
