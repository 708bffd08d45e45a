//! Time as a parameter, so that a test can advance 90 days in one line.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::suspend_aware_instant::SuspendAwareInstant;

/// How far two clocks may differ that are kept by NTP, with what the way to the other takes.
pub const TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// A source of the current time. A clock of one source has one time, and nothing to be compared with.
pub trait Clock: Send + Sync + Debug {
    /// The current time, UTC: the database's, where there is one, so it can be given to SQL in place of `now()`.
    fn now(&self) -> DateTime<Utc>;

    /// The earlier of the database's time and the machine's: what must not happen early is due by it, since it takes
    /// two wrong clocks to be early.
    fn agreed(&self) -> DateTime<Utc> {
        self.now()
    }

    /// A time that has certainly passed: what is kept for a time is deleted by it. It is the earliest of the database's
    /// time, the machine's, and the last trusted time carried forward by the time since boot, so one wrong clock deletes
    /// nothing early.
    fn certainly_past(&self) -> DateTime<Utc> {
        self.now()
    }

    /// How far the machine's clock is ahead of the database's; `None` until that was read.
    fn ahead(&self) -> Option<TimeDelta> {
        None
    }

    /// Takes over the database's time: its clock, `reading`, was read on a request sent at `asked`.
    fn synchronize(&self, reading: DateTime<Utc>, asked: SuspendAwareInstant) {
        let _ = (reading, asked);
    }

    /// How often the database's clock was found to have been set by more than [`TOLERANCE`].
    fn steps(&self) -> u64 {
        0
    }

    /// Sets the trusted time: see [`Clock::certainly_past`].
    fn trust(&self, time: DateTime<Utc>) {
        let _ = time;
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// The machine's clock moved by an offset that tests set.
#[derive(Debug, Default)]
pub struct MovedClock {
    offset: Mutex<TimeDelta>,
}

impl MovedClock {
    /// Moves the clock on by `by`; a negative value moves it back.
    pub fn advance(&self, by: TimeDelta) {
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for MovedClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + *self.offset.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
