//! Reads the whole queue: at the start, every few minutes, and when something may have been missed. Polls read only
//! recently ready deliveries, and so miss late commits, deliveries known only to a process that has died, and
//! deliveries hidden by a clock change. While an old snapshot is held anywhere in the database, a full scan takes long,
//! so it runs concurrently with the polls.

use std::pin::Pin;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::time::timeout;
use uuid::Uuid;

use super::Webhooks;
use super::arrivals::ahead;
use super::claim::READY;
use super::ready_set::ReadySet;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::webhook_queue::due::{From, make_ready};
use mailgate_storage::webhook_queue::ready::{self, Ready};
use mailgate_types::ids::EndpointId;

/// How often the queue is read, by the clock.
const EVERY: TimeDelta = TimeDelta::minutes(5);

/// The shortest pause, and the factor of a long scan's duration for the pause after it.
const PAUSE: Duration = Duration::from_secs(1);
const SHARE: u32 = 10;

/// A step that takes longer has lost its database connection: its statements time out before that.
const STEP: Duration = Duration::from_secs(620);

/// How often due deliveries are made ready while there is no room for endpoints.
const DUE_AGAIN: Duration = Duration::from_mins(1);

/// Endpoints per step, and statements of a step that make deliveries ready.
const ENDPOINTS: usize = 1_000;
const ROUNDS: usize = 5;

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Deliveries that are due from here on are made ready.
    Due(DateTime<Utc>),
    /// Endpoints with ready deliveries are read, those after this one.
    Endpoints(EndpointId),
}

const BEGINNING: At = At::Due(DateTime::UNIX_EPOCH);

/// The result of a step, and where the next one continues; `None`: that was all.
type Found = (Vec<(EndpointId, Vec<Ready>)>, Option<At>);

/// A step that has ended.
pub(super) struct Step {
    connection: DedicatedConnection,
    at: At,
    took: Duration,
    found: Result<Found, sqlx::Error>,
}

/// The progress of a scan, and the time of the next one.
pub(super) struct FullScan {
    webhooks: Webhooks,
    /// Kept during a scan only.
    connection: Option<DedicatedConnection>,
    at: At,
    /// How long this scan has taken so far.
    took: Duration,
    /// When the next one is due; it rests until then in any case.
    due: DateTime<Utc>,
    rests_until: Instant,
    /// Something may have been missed before this scan's current position.
    is_hurried: bool,
    /// When due deliveries were last made ready.
    due_at: Option<Instant>,
}

impl FullScan {
    /// The first one is due now.
    pub(super) fn new(webhooks: &Webhooks) -> Self {
        Self {
            webhooks: webhooks.clone(),
            connection: None,
            at: BEGINNING,
            took: Duration::ZERO,
            due: webhooks.clock.now(),
            rests_until: Instant::now(),
            is_hurried: false,
            due_at: None,
        }
    }

    /// Something may have been missed.
    pub(super) fn hurry(&mut self) {
        self.due = self.due.min(self.webhooks.clock.now());
        self.is_hurried = true;
    }

    /// The next step, if it is time for one and there is room for this many more endpoints.
    pub(super) fn next(
        &mut self,
        room: usize,
    ) -> Option<Pin<Box<dyn Future<Output = Step> + Send>>> {
        let now = self.webhooks.clock.now();
        // It can't be due later, unless the clock was set back.
        let is_due = now >= self.due || self.due - now > EVERY;
        if !is_due || Instant::now() < self.rests_until {
            return None;
        }
        let at = match self.at {
            At::Endpoints(_) if room == 0 => {
                if self.due_at.is_some_and(|at| at.elapsed() < DUE_AGAIN) {
                    return None;
                }
                BEGINNING
            }
            at => at,
        };
        if at == BEGINNING && self.at == BEGINNING {
            self.is_hurried = false;
        }
        let pool = &self.webhooks.pool;
        let connection =
            (self.connection.take()).unwrap_or_else(|| DedicatedConnection::patient(pool.clone()));
        Some(Box::pin(step(connection, at, now, room)))
    }

    /// Applies the result of a step.
    pub(super) fn take(&mut self, step: Step, set: &mut ReadySet) {
        if let At::Due(_) = step.at {
            self.due_at = Some(Instant::now());
        }
        if matches!((step.at, self.at), (At::Due(_), At::Endpoints(_))) && step.found.is_ok() {
            // Independently of the scan, which waits for room.
            self.connection = Some(step.connection);
            return;
        }
        self.took += step.took;
        let next = match step.found {
            Ok((found, next)) => {
                let full = found.iter().position(|(_, ready)| {
                    // Not an endpoint that is already known.
                    !ready.iter().all(|ready| set.add(*ready))
                });
                let before = |position: usize| position.checked_sub(1).map(|last| found[last].0);
                match full {
                    Some(position) => {
                        before(position).map_or(Some(self.at), |last| Some(At::Endpoints(last)))
                    }
                    None => next,
                }
            }
            Err(error) => {
                trouble!(
                    warn,
                    error,
                    "the webhook queue can't be read as a whole; trying again"
                );
                self.rests_until = Instant::now() + PAUSE.max(step.took);
                return;
            }
        };
        if let Some(next) = next {
            self.at = next;
            self.connection = Some(step.connection);
            return;
        }
        tracing::debug!(took = ?self.took, "the webhook queue was read as a whole");
        self.at = BEGINNING;
        self.rests_until = Instant::now() + PAUSE.max(self.took * SHARE);
        self.took = Duration::ZERO;
        let now = self.webhooks.clock.now();
        self.due = if self.is_hurried { now } else { now + EVERY };
    }
}

async fn step(
    mut connection: DedicatedConnection,
    at: At,
    now: DateTime<Utc>,
    room: usize,
) -> Step {
    let began = Instant::now();
    let reading = connection.run(async |connection| match at {
        At::Due(from) => due(connection, now, from).await,
        At::Endpoints(after) => endpoints(connection, now, after, room.min(ENDPOINTS)).await,
    });
    let found = timeout(STEP, reading).await;
    let found = found.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    Step {
        connection,
        at,
        took: began.elapsed(),
        found,
    }
}

async fn due(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    mut from: DateTime<Utc>,
) -> Result<Found, sqlx::Error> {
    for _ in 0..ROUNDS {
        let begin = From {
            due_at: from,
            lease: None,
        };
        let round = make_ready(connection, now, begin, READY).await?;
        match round.last {
            Some(last) if round.found == READY => from = last,
            _ => return Ok((Vec::new(), Some(At::Endpoints(EndpointId(Uuid::nil()))))),
        }
    }
    Ok((Vec::new(), Some(At::Due(from))))
}

async fn endpoints(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    after: EndpointId,
    limit: usize,
) -> Result<Found, sqlx::Error> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = ready::all(connection, after, most, ahead(now)).await?;
    let last = found.last().map(|(endpoint, _)| At::Endpoints(*endpoint));
    let is_all = found.len() < limit;
    Ok((found, last.filter(|_| !is_all)))
}
