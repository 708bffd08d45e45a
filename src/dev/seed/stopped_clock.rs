//! A clock that stands still, by which something happened then.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use mailgate_types::clock::{Clock, SharedClock};

/// Always the same time.
#[derive(Debug)]
pub(in crate::dev) struct StoppedClock(DateTime<Utc>);

impl StoppedClock {
    /// At this time.
    pub(in crate::dev) fn at(at: DateTime<Utc>) -> SharedClock {
        Arc::new(Self(at))
    }
}

impl Clock for StoppedClock {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}
