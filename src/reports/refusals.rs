//! Messages that were refused before a mailbox was chosen for them. They are collected in the process and written
//! together, so that refusing costs the database next to nothing, however often it happens.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use sqlx::PgPool;

use crate::storage::refusals::{self, Count, Refused};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, RefusalId};
use mailgate_types::one_line::one_line;
use mailgate_types::refusal::{Door, RefusalReason};

/// Refusals of each app that can be looked at.
pub const LAST: usize = 100;

/// How long they can.
const KEPT: TimeDelta = TimeDelta::days(7);

/// Apps that are collected for between two writes; what further ones have refused isn't noted.
const MOST_APPS: usize = 10_000;

/// Bytes of an address.
const ADDRESS_BYTES: usize = 320;

/// Rows that are removed together.
const BATCH: i64 = 1_000;

/// What was refused of late.
#[derive(Debug, Clone)]
pub struct Refusals {
    pool: PgPool,
    clock: SharedClock,
    noted: Arc<Mutex<HashMap<AppId, OfApp>>>,
}

#[derive(Debug, Default)]
struct OfApp {
    counts: HashMap<(DateTime<Utc>, RefusalReason), i64>,
    last: VecDeque<Refused>,
}

/// The refusals of an app.
#[derive(Debug, Clone, Default)]
pub struct RefusalReport {
    /// The last ones, the newest first.
    pub last: Vec<Refused>,
    /// How many by hour and reason, the newest hour first.
    pub counts: Vec<Count>,
}

impl Refusals {
    /// None yet.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self {
            pool,
            clock,
            noted: Arc::default(),
        }
    }

    /// Notes one, to be written by [`Self::write`].
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

    /// Writes what was noted since the last time. What can't be written is kept for the next one.
    pub async fn write(&self) -> Result<(), sqlx::Error> {
        let noted = mem::take(&mut *self.noted());
        if noted.is_empty() {
            return Ok(());
        }
        let written = self.try_write(&noted).await;
        if written.is_err() {
            self.take_back(noted);
        }
        written
    }

    async fn try_write(&self, noted: &HashMap<AppId, OfApp>) -> Result<(), sqlx::Error> {
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
        let mut transaction = self.pool.begin().await?;
        refusals::add(&mut transaction, &counts, &last, kept).await?;
        transaction.commit().await
    }

    fn take_back(&self, before: HashMap<AppId, OfApp>) {
        let mut noted = self.noted();
        for (app, earlier) in before {
            if noted.len() >= MOST_APPS && !noted.contains_key(&app) {
                continue;
            }
            let of_app = noted.entry(app).or_default();
            for (kind, messages) in earlier.counts {
                *of_app.counts.entry(kind).or_default() += messages;
            }
            for refused in earlier.last.into_iter().rev() {
                if of_app.last.len() < LAST {
                    of_app.last.push_front(refused);
                }
            }
        }
    }

    /// What was refused of an app in the last seven days.
    pub async fn of_app(&self, app: AppId, limit: i64) -> Result<RefusalReport, sqlx::Error> {
        // Whoever has just been refused wants to see it.
        self.write().await?;
        let since = self.clock.now() - KEPT;
        let mut connection = self.pool.acquire().await?;
        Ok(RefusalReport {
            last: refusals::list(&mut connection, app, since, limit).await?,
            counts: refusals::counts(&mut connection, app, since).await?,
        })
    }

    /// Removes what has aged away.
    pub async fn forget(&self) -> Result<(), sqlx::Error> {
        let before = self.clock.now() - KEPT;
        loop {
            let mut connection = self.pool.acquire().await?;
            let removed = refusals::forget(&mut connection, before, BATCH).await?;
            if removed < BATCH.unsigned_abs() {
                return Ok(());
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<AppId, OfApp>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
