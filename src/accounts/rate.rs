//! How often one key may call, at both doors.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use uuid::Uuid;

use super::Accounts;

/// Keys that are remembered before those that have not called lately are forgotten.
const REMEMBERED: usize = 50_000;

type Limiter =
    RateLimiter<Uuid, DefaultKeyedStateStore<Uuid>, DefaultClock, StateInformationMiddleware>;

/// Calls by key.
#[derive(Debug)]
pub(super) struct Rates {
    limiter: Limiter,
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
            limiter: RateLimiter::keyed(Quota::per_second(per_second).allow_burst(burst))
                .with_middleware(),
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
        if rates.limiter.len() > REMEMBERED {
            rates.limiter.retain_recent();
        }
        let (remaining, retry_after) = match rates.limiter.check_key(&owner) {
            Ok(snapshot) => (snapshot.remaining_burst_capacity(), None),
            Err(refusal) => (
                0,
                Some(refusal.wait_time_from(DefaultClock::default().now())),
            ),
        };
        RateDecision {
            burst: rates.burst,
            per_second: rates.per_second,
            remaining,
            retry_after,
        }
    }
}
