//! Time as a parameter, so that a test can advance 90 days in one line.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// A source of the current time.
pub trait Clock: Send + Sync + Debug {
    /// The current time, UTC.
    fn now(&self) -> DateTime<Utc>;
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
