//! Time as it passes for everybody: also while this machine is suspended, when [`std::time::Instant`] stands still.

use std::time::Duration;

/// A moment since the machine was started, by a clock that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

impl BootTime {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self(Duration::new(
            u64::try_from(now.tv_sec).unwrap_or_default(),
            u32::try_from(now.tv_nsec).unwrap_or_default(),
        ))
    }

    /// How long ago it was.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    /// A moment earlier; the machine's start at the earliest.
    #[must_use]
    pub fn before(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(earlier))
    }
}
