//! Messages refused before a mailbox was chosen for them. They are collected in memory and written together, so that
//! refusing costs the database next to nothing, however often it happens.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use mailgate_storage::database::transaction;
use mailgate_storage::refusals::{self, Count, Refused};
use mailgate_types::clock::SharedClock;
use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, RefusalId, uuid_at};
use mailgate_types::one_line::one_line;
use mailgate_types::past::Past;
use mailgate_types::refusal::RefusalReason;

/// The number of refusals that are listed for each app.
pub const LAST: usize = 100;

/// How long refusals are kept.
const KEPT: TimeDelta = TimeDelta::days(7);

/// Apps collected between two writes; refusals of further apps are not recorded.
const MOST_APPS: usize = 10_000;

/// Longest recorded address, in bytes.
const ADDRESS_BYTES: usize = 320;

/// Rows removed per statement.
const BATCH: i64 = 1_000;

/// Recent refusals.
#[derive(Debug, Clone)]
pub struct Refusals {
    pool: PgPool,
    clock: SharedClock,
    noted: Arc<Mutex<HashMap<AppId, OfApp>>>,
    written: Arc<tokio::sync::Mutex<Written>>,
}

/// The progress of writing refusals.
#[derive(Debug, Default)]
struct Written {
    /// The last batch that was certainly written.
    last: Option<Uuid>,
    /// The next batch, if it may have been written.
    tried: Option<(Uuid, HashMap<AppId, OfApp>)>,
}

#[derive(Debug, Default)]
struct OfApp {
    counts: HashMap<(DateTime<Utc>, RefusalReason), i64>,
    last: VecDeque<Refused>,
}

/// The refusals of an app.
#[derive(Debug, Clone, Default)]
pub struct RefusalReport {
    /// The latest ones, newest first.
    pub last: Vec<Refused>,
    /// Their number by hour and reason, newest hour first.
    pub counts: Vec<Count>,
}

impl Refusals {
    /// Creates an empty collection.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self {
            pool,
            clock,
            noted: Arc::default(),
            written: Arc::default(),
        }
    }

    /// Records a refusal, to be written by [`Self::write`].
    pub fn note(
        &self,
        app: AppId,
        door: Door,
        reason: RefusalReason,
        from: Option<&str>,
        to: Option<&str>,
    ) {
        let now = self.clock.now();
        let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        let shown = |address: Option<&str>| {
            let address = address.filter(|address| !address.is_empty());
            address.map(|address| one_line(address, ADDRESS_BYTES))
        };
        let refused = Refused {
            app,
            id: RefusalId::at(now),
            door,
            reason,
            from: shown(from),
            to: shown(to),
        };
        let mut noted = self.noted();
        if noted.len() >= MOST_APPS && !noted.contains_key(&app) {
            return;
        }
        let of_app = noted.entry(app).or_default();
        *of_app.counts.entry((hour, reason)).or_default() += 1;
        if of_app.last.len() >= LAST {
            of_app.last.pop_front();
        }
        of_app.last.push_back(refused);
    }

    /// Writes the refusals recorded since the last call. If that fails, they are kept for the next call, as a separate
    /// batch: the response to its commit may have been lost.
    pub async fn write(&self) -> Result<(), sqlx::Error> {
        let mut written = self.written.lock().await;
        // The batch tried before, and later refusals.
        for _ in 0..2 {
            let (id, noted) = match written.tried.take() {
                Some(tried) => tried,
                None => (uuid_at(self.clock.now()), mem::take(&mut *self.noted())),
            };
            if noted.is_empty() {
                return Ok(());
            }
            // Until the result is known: this may be cancelled.
            let previous = written.last;
            let (_, noted) = written.tried.insert((id, noted));
            self.try_write(id, previous, noted).await?;
            *written = Written {
                last: Some(id),
                tried: None,
            };
        }
        Ok(())
    }

    async fn try_write(
        &self,
        batch: Uuid,
        previous: Option<Uuid>,
        noted: &HashMap<AppId, OfApp>,
    ) -> Result<(), sqlx::Error> {
        let mut counts = Vec::new();
        let mut last = Vec::new();
        for (app, of_app) in noted {
            counts.extend(
                (of_app.counts.iter()).map(|((hour, reason), messages)| Count {
                    app: *app,
                    hour: *hour,
                    reason: *reason,
                    messages: *messages,
                }),
            );
            last.extend(of_app.last.iter().cloned());
        }
        let kept = i64::try_from(LAST).unwrap_or(i64::MAX);
        let mut transaction = transaction::begin(&self.pool).await?;
        if refusals::begin_batch(&mut transaction, batch, previous).await? {
            refusals::add(&mut transaction, &counts, &last, kept).await?;
        }
        transaction.commit().await
    }

    /// An app's refusals in the last seven days.
    pub async fn of_app(&self, app: AppId, limit: i64) -> Result<RefusalReport, sqlx::Error> {
        // Include refusals that were recorded just now.
        self.write().await?;
        let since = self.clock.now() - KEPT;
        let mut connection = self.pool.acquire().await?;
        Ok(RefusalReport {
            last: refusals::list(&mut connection, app, since, limit).await?,
            counts: refusals::counts(&mut connection, app, since).await?,
        })
    }

    /// Removes expired refusals.
    pub async fn forget(&self) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock).before(KEPT);
        loop {
            let mut connection = self.pool.acquire().await?;
            let removed = refusals::forget(&mut connection, past, BATCH).await?;
            if removed < BATCH.unsigned_abs() {
                return Ok(());
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<AppId, OfApp>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
