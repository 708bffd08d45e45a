//! Rate limits calls, over HTTP and SMTP: per key, and for most keys of a subscriber together, of which it can have as
//! many as it likes. The limits are shared by all gateways, so each one enforces its part.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use governor::Quota;
use governor::clock::DefaultClock;
use uuid::Uuid;

use super::Accounts;
use mailgate_types::ids::SubscriberId;
use mailgate_types::limiter::KeyedLimiter;

/// What all send keys and additional API secrets of a subscriber may do together, in keys that do as much as each may.
const KEYS_TOGETHER: u32 = 10;

/// The rate limits.
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
    keys: KeyedLimiter<Uuid>,
    subscribers: KeyedLimiter<SubscriberId>,
}

/// Whose calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledBy {
    /// A subscriber's main API secret, or its portal: by themselves, so that whoever has the other keys can't keep their
    /// owner from ending them.
    Owner(SubscriberId),
    /// A send key or an additional API secret: the key (or the app whose main key it is), and the subscriber.
    Key(Uuid, SubscriberId),
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
    /// Whether it is the subscriber's keys together that exceed theirs.
    pub is_of_all: bool,
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
            keys: limiter(per_second, burst, 1),
            subscribers: limiter(per_second, burst, KEYS_TOGETHER),
        }
    }

    /// Counts a call: how many are left, or how long to wait, and whether for what the subscriber's keys do together.
    fn count(&self, by: CalledBy) -> Result<u32, (Duration, bool)> {
        let (key, subscriber) = match by {
            CalledBy::Owner(subscriber) => (subscriber.0, None),
            CalledBy::Key(key, subscriber) => (key, Some(subscriber)),
        };
        // One that is over its own limit uses up nothing of the others'.
        let left = self.keys.count(&key).map_err(|wait| (wait, false))?;
        let Some(subscriber) = subscriber else {
            return Ok(left);
        };
        let counted = self.subscribers.count(&subscriber);
        let left_of_all = counted.map_err(|wait| (wait, true))?;
        Ok(left.min(left_of_all))
    }
}

/// Every caller has a valid key, so there are no more than keys.
fn limiter<K: Hash + Eq + Clone>(
    per_second: NonZeroU32,
    burst: NonZeroU32,
    times: u32,
) -> KeyedLimiter<K> {
    let times = |part: NonZeroU32| part.saturating_mul(NonZeroU32::MIN.saturating_add(times - 1));
    let quota = Quota::per_second(times(per_second)).allow_burst(times(burst));
    KeyedLimiter::new(quota, usize::MAX, DefaultClock::default())
}

impl Accounts {
    /// Sets the number of gateways that share the limit of each key.
    pub fn share_among(&self, living: usize) {
        self.rates.share_among(living);
    }

    /// Counts a call.
    #[must_use]
    pub fn count_call(&self, by: CalledBy) -> RateDecision {
        let share = self.rates.share.read();
        let share = share.unwrap_or_else(PoisonError::into_inner);
        let counted = share.count(by);
        let refused = counted.err();
        RateDecision {
            burst: share.burst.get(),
            per_second: share.per_second.get(),
            remaining: counted.unwrap_or(0),
            retry_after: refused.map(|(wait, _)| wait),
            is_of_all: refused.is_some_and(|(_, is_of_all)| is_of_all),
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
            let owner = CalledBy::Owner(SubscriberId(Uuid::nil()));
            let share = rates.share.read().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(share.per_second.get(), per_second);
            let let_through = (0..100).filter(|_| share.count(owner).is_ok());
            assert!(let_through.count() >= burst, "{living}");
        }
    }

    #[test]
    fn more_keys_are_no_more_than_ten_and_never_the_owner() {
        // So slow that none comes back during the test.
        let share = Share::new(1, 100, 1);
        let (one, other) = (SubscriberId(Uuid::nil()), SubscriberId(Uuid::max()));
        let mut refused = 0;
        for key in 1..31 {
            for _ in 0..101 {
                let by = CalledBy::Key(Uuid::from_u128(key), one);
                // The hundred-and-first is its own fault.
                refused += usize::from(matches!(share.count(by), Err((_, true))));
            }
        }
        assert!((1_900..=2_000).contains(&refused), "{refused}");
        assert!(share.count(CalledBy::Owner(one)).is_ok());
        let neighbour = CalledBy::Key(Uuid::from_u128(99), other);
        assert!(share.count(neighbour).is_ok());
    }
}
