//! Time as a parameter, so that a test can advance 90 days in one line.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::suspend_aware_instant::SuspendAwareInstant;

/// The tolerated difference between two clocks synchronized by NTP, network latency included.
pub const TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// A source of the current time. The defaults are for a clock with a single source.
pub trait Clock: Send + Sync + Debug {
    /// The current time in UTC: the database's, if there is one, so SQL can use it in place of `now()`.
    fn now(&self) -> DateTime<Utc>;

    /// The earlier of the database's time and the machine's, for work that must not happen early: both clocks would
    /// have to be wrong.
    fn agreed(&self) -> DateTime<Utc> {
        self.now()
    }

    /// A time that has certainly passed, for deletion by age. It is the earliest of the database's time, the machine's,
    /// and the last trusted time carried forward by the time since boot, so one wrong clock deletes nothing early.
    fn certainly_past(&self) -> DateTime<Utc> {
        self.now()
    }

    /// How far the machine's clock is ahead of the database's; `None` until the latter has been read.
    fn ahead(&self) -> Option<TimeDelta> {
        None
    }

    /// Adopts the database's time: `reading` is the answer to a request sent at `asked`.
    fn synchronize(&self, reading: DateTime<Utc>, asked: SuspendAwareInstant) {
        let _ = (reading, asked);
    }

    /// The number of times that the database's clock was set by more than [`TOLERANCE`].
    fn steps(&self) -> u64 {
        0
    }

    /// Sets the trusted time; see [`Clock::certainly_past`].
    fn trust(&self, time: DateTime<Utc>) {
        let _ = time;
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
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
    /// Advances the clock by `by`; a negative value sets it back.
    pub fn advance(&self, by: TimeDelta) {
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for MovedClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + *self.offset.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
