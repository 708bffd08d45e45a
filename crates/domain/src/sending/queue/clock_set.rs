//! Adjusts the waiting times after the database's clock was set, which the last sign of life shows.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection as _, PgPool};

use mailgate_storage::clock_set::{bring_forward, wait_anew};
use mailgate_storage::database::pool::maintenance;
use mailgate_storage::sign_of_life::replace;
use mailgate_types::clock::{SharedClock, TOLERANCE};
use mailgate_types::sign_of_life::SignOfLife;

/// The longest time between two signs of life while a gateway runs and the clock isn't set.
const LONGEST: TimeDelta = TimeDelta::seconds(75);

/// How the database's clock was set since the last sign of life.
#[derive(Debug, Clone, Copy)]
pub enum ClockSet {
    /// Back by this much, to a time that is nearer to the machine's: it was ahead.
    Back(TimeDelta),
    /// Forward; or no gateway has run.
    Forward,
}

impl ClockSet {
    /// `None` if it wasn't, or was set back from a time that was nearer to the machine's: waiting messages keep that
    /// time.
    #[must_use]
    pub fn since(last: SignOfLife, now: DateTime<Utc>, clock: &SharedClock) -> Option<Self> {
        let back = last.observed_at - now;
        if back > TOLERANCE {
            // The clock may not have been synchronized since; a clock with a single source can't be compared.
            let machine = clock.ahead().map(|ahead| clock.now() + ahead);
            let off = |time: DateTime<Utc>| machine.map(|machine| (machine - time).abs());
            let is_nearer = machine.is_none() || off(now) < off(last.observed_at);
            return is_nearer.then_some(Self::Back(back));
        }
        (-back > LONGEST).then_some(Self::Forward)
    }

    /// Replaces the last sign of life by the next, and adjusts all waiting times as if the clock had been right;
    /// `false` if another gateway does.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is changed then.
    pub async fn apply(
        self,
        pool: &PgPool,
        (last, next): (SignOfLife, SignOfLife),
    ) -> Result<bool, sqlx::Error> {
        let mut connection = maintenance(pool).await?;
        let mut transaction = connection.begin().await?;
        if !replace(&mut transaction, last, next).await? {
            return Ok(false);
        }
        match self {
            Self::Back(by) => bring_forward(&mut transaction, by).await?,
            Self::Forward => wait_anew(&mut transaction).await?,
        }
        transaction.commit().await?;
        if let Self::Back(by) = self {
            tracing::warn!(
                seconds = by.num_seconds(),
                "the database's clock was ahead, and was set back: waiting messages were brought forward by as much, but no scheduled one to before its time"
            );
        }
        Ok(true)
    }
}
