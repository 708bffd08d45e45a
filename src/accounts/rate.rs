//! Rate limits calls per key, over HTTP and SMTP. The limit is shared by all gateways, so each one enforces its part.

use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use governor::Quota;
use governor::clock::DefaultClock;
use uuid::Uuid;

use super::Accounts;
use mailgate_types::limiter::KeyedLimiter;

/// The rate limits by key.
#[derive(Debug)]
pub(super) struct Rates {
    /// The limit of all gateways together.
    per_second: u32,
    burst: u32,
    share: RwLock<Share>,
}

/// This gateway's part of the limit.
#[derive(Debug)]
struct Share {
    living: usize,
    per_second: NonZeroU32,
    burst: NonZeroU32,
    limiter: KeyedLimiter<Uuid>,
}

/// The limiter's decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// The largest burst of calls.
    pub burst: u32,
    /// The sustained rate, in calls per second.
    pub per_second: u32,
    /// Calls left at the moment.
    pub remaining: u32,
    /// Set if the call exceeds the limit: how long to wait before the next one.
    pub retry_after: Option<Duration>,
}

impl Rates {
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second,
            burst,
            share: RwLock::new(Share::new(per_second, burst, 1)),
        }
    }

    /// Starts counting afresh if the number of gateways that share the limit has changed.
    fn share_among(&self, living: usize) {
        let is_new = {
            let share = self.share.read().unwrap_or_else(PoisonError::into_inner);
            share.living != living
        };
        if is_new {
            let new = Share::new(self.per_second, self.burst, living);
            *self.share.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }
}

impl Share {
    fn new(per_second: u32, burst: u32, living: usize) -> Self {
        let among = u32::try_from(living.max(1)).unwrap_or(u32::MAX);
        let part = |all: u32| NonZeroU32::new(all / among).unwrap_or(NonZeroU32::MIN);
        let (per_second, burst) = (part(per_second), part(burst));
        Self {
            living,
            per_second,
            burst,
            limiter: KeyedLimiter::new(
                Quota::per_second(per_second).allow_burst(burst),
                // Every caller has a valid key, so there are no more than keys.
                usize::MAX,
                DefaultClock::default(),
            ),
        }
    }
}

impl Accounts {
    /// Sets the number of gateways that share the limit of each key.
    pub fn share_among(&self, living: usize) {
        self.rates.share_among(living);
    }

    /// Counts a call of a key: `owner` is the additional key, or else the app or the subscriber whose main key it is.
    #[must_use]
    pub fn count_call(&self, owner: Uuid) -> RateDecision {
        let share = self.rates.share.read();
        let share = share.unwrap_or_else(PoisonError::into_inner);
        let counted = share.limiter.count(&owner);
        RateDecision {
            burst: share.burst.get(),
            per_second: share.per_second.get(),
            remaining: counted.unwrap_or(0),
            retry_after: counted.err(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_share_what_is_let_through() {
        let rates = Rates::new(50, 100);
        for (living, per_second, burst) in [(1, 50, 100), (3, 16, 33), (200, 1, 1), (1, 50, 100)] {
            rates.share_among(living);
            let owner = Uuid::nil();
            let share = rates.share.read().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(share.per_second.get(), per_second);
            let let_through = (0..100).filter(|_| share.limiter.count(&owner).is_ok());
            assert!(let_through.count() >= burst, "{living}");
        }
    }
}
