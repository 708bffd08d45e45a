//! How often one key may call, at both doors.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;
use governor::clock::DefaultClock;
use uuid::Uuid;

use super::Accounts;
use crate::types::limiter::KeyedLimiter;

/// Calls by key.
#[derive(Debug)]
pub(super) struct Rates {
    limiter: KeyedLimiter<Uuid>,
    burst: u32,
    per_second: u32,
}

/// What the limiter says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// Calls that may be made at once.
    pub burst: u32,
    /// Calls a second that can be kept up.
    pub per_second: u32,
    /// Calls left at this moment.
    pub remaining: u32,
    /// The call is one too many; the next one may come after this.
    pub retry_after: Option<Duration>,
}

impl Rates {
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        let per_second = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: KeyedLimiter::new(
                Quota::per_second(per_second).allow_burst(burst),
                // Whoever calls has a key, so there are no more than apps and subscribers.
                usize::MAX,
                DefaultClock::default(),
            ),
            burst: burst.get(),
            per_second: per_second.get(),
        }
    }
}

impl Accounts {
    /// Counts a call of a key that belongs to `owner` (a subscriber or an app).
    #[must_use]
    pub fn count_call(&self, owner: Uuid) -> RateDecision {
        let rates = &self.rates;
        let counted = rates.limiter.count(&owner);
        RateDecision {
            burst: rates.burst,
            per_second: rates.per_second,
            remaining: counted.unwrap_or(0),
            retry_after: counted.err(),
        }
    }
}
