//! Monotonic time that also advances while the machine is suspended, when [`std::time::Instant`] stands still.

use std::time::Duration;

/// A time since boot, by a clock that can't be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuspendAwareInstant(Duration);

impl SuspendAwareInstant {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self(Duration::new(
            u64::try_from(now.tv_sec).unwrap_or_default(),
            u32::try_from(now.tv_nsec).unwrap_or_default(),
        ))
    }

    /// The time elapsed since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    /// The time from `earlier` to this one; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// An earlier time, no earlier than boot.
    #[must_use]
    pub fn before(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(earlier))
    }
}
