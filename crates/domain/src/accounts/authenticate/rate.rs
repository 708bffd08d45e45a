//! Rate limits calls over HTTP and SMTP: per key, and for most keys of a subscriber together, since their number is up
//! to the subscriber. The limits are shared by all gateways, so each one enforces its part. A subscriber may have its
//! own rate, with a proportional burst.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use governor::Quota;
use governor::clock::DefaultClock;
use uuid::Uuid;

use crate::accounts::Accounts;
use mailgate_types::ids::SubscriberId;
use mailgate_types::limiter::KeyedLimiter;

/// The limit of all send keys and additional API secrets of a subscriber together, as a multiple of one key's.
const KEYS_TOGETHER: u32 = 10;

/// The rate limits.
#[derive(Debug)]
pub(in crate::accounts) struct Rates {
    /// The limit of all gateways together, for subscribers without a rate of their own.
    per_second: u32,
    burst: u32,
    share: RwLock<Share>,
}

/// This gateway's part of the limits.
#[derive(Debug)]
struct Share {
    living: usize,
    common: Limiters,
    /// Those of subscribers with rates of their own, by the rate of all gateways together.
    own: HashMap<NonZeroU32, Limiters>,
}

/// Counts calls at one rate.
#[derive(Debug)]
struct Limiters {
    per_second: NonZeroU32,
    burst: NonZeroU32,
    keys: KeyedLimiter<Uuid>,
    subscribers: KeyedLimiter<SubscriberId>,
}

/// The holder of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledBy {
    /// A subscriber's main API secret, or its portal: counted separately, so that a thief of the other keys can't keep
    /// their owner from ending them.
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
    /// Whether the subscriber's keys together exceed their limit.
    pub is_of_all: bool,
}

impl Rates {
    pub(in crate::accounts) fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second,
            burst,
            share: RwLock::new(Share::new(per_second, burst, 1)),
        }
    }

    /// The burst at a rate.
    fn burst_at(&self, per_second: NonZeroU32) -> u32 {
        let burst = u64::from(self.burst) * u64::from(per_second.get());
        u32::try_from(burst / u64::from(self.per_second.max(1))).unwrap_or(u32::MAX)
    }

    /// Counts a call, at a subscriber's own rate if it has one.
    fn count(&self, by: CalledBy, own: Option<NonZeroU32>) -> RateDecision {
        let own = {
            let share = self.share.read().unwrap_or_else(PoisonError::into_inner);
            let Some(own) = own else {
                return share.common.decide(by);
            };
            if let Some(limiters) = share.own.get(&own) {
                return limiters.decide(by);
            }
            own
        };
        let mut share = self.share.write().unwrap_or_else(PoisonError::into_inner);
        let living = share.living;
        // Limiters for rates that no subscriber has any more.
        share.own.retain(|_, limiters| !limiters.is_idle());
        let begin = || Limiters::new(own.get(), self.burst_at(own), living);
        share.own.entry(own).or_insert_with(begin).decide(by)
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
        Self {
            living,
            common: Limiters::new(per_second, burst, living),
            own: HashMap::new(),
        }
    }
}

impl Limiters {
    /// This gateway's part of a rate, if so many share it.
    fn new(per_second: u32, burst: u32, living: usize) -> Self {
        let among = u32::try_from(living.max(1)).unwrap_or(u32::MAX);
        let part = |all: u32| NonZeroU32::new(all / among).unwrap_or(NonZeroU32::MIN);
        let (per_second, burst) = (part(per_second), part(burst));
        Self {
            per_second,
            burst,
            keys: limiter(per_second, burst, 1),
            subscribers: limiter(per_second, burst, KEYS_TOGETHER),
        }
    }

    /// Counts a call: returns how many are left, or how long to wait, and whether for the subscriber's common limit.
    fn count(&self, by: CalledBy) -> Result<u32, (Duration, bool)> {
        let (key, subscriber) = match by {
            CalledBy::Owner(subscriber) => (subscriber.0, None),
            CalledBy::Key(key, subscriber) => (key, Some(subscriber)),
        };
        // A key that exceeds its own limit doesn't use up the common one.
        let left = self.keys.count(&key).map_err(|wait| (wait, false))?;
        let Some(subscriber) = subscriber else {
            return Ok(left);
        };
        let counted = self.subscribers.count(&subscriber);
        let left_of_all = counted.map_err(|wait| (wait, true))?;
        Ok(left.min(left_of_all))
    }

    fn decide(&self, by: CalledBy) -> RateDecision {
        let counted = self.count(by);
        let refused = counted.err();
        RateDecision {
            burst: self.burst.get(),
            per_second: self.per_second.get(),
            remaining: counted.unwrap_or(0),
            retry_after: refused.map(|(wait, _)| wait),
            is_of_all: refused.is_some_and(|(_, is_of_all)| is_of_all),
        }
    }

    /// Whether no calls are counted at the moment.
    fn is_idle(&self) -> bool {
        self.keys.held() == 0 && self.subscribers.held() == 0
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

    /// Counts a call, at its subscriber's own rate if it has one.
    #[must_use]
    pub fn count_call(&self, by: CalledBy, own: Option<NonZeroU32>) -> RateDecision {
        self.rates.count(by, own)
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
            assert_eq!(rates.count(owner, None).per_second, per_second);
            let let_through = (1..100).filter(|_| rates.count(owner, None).retry_after.is_none());
            assert!(let_through.count() >= burst - 1, "{living}");
        }
    }

    #[test]
    fn a_rate_of_its_own_has_its_burst_in_proportion_and_its_part_at_each_gateway() {
        let rates = Rates::new(50, 100);
        let owner = CalledBy::Owner(SubscriberId(Uuid::nil()));
        for (living, own, per_second, burst) in [
            (1, None, 50, 100),
            (1, Some(5), 5, 10),
            (2, Some(5), 2, 5),
            (1, Some(200), 200, 400),
            (2, Some(200), 100, 200),
            (1, Some(1), 1, 2),
            (1, Some(1_000_000), 1_000_000, 2_000_000),
        ] {
            rates.share_among(living);
            let decision = rates.count(owner, own.and_then(NonZeroU32::new));
            assert_eq!(
                (decision.per_second, decision.burst),
                (per_second, burst),
                "{living} {own:?}"
            );
        }
        // One call at least.
        let uneven = Rates::new(1_000_000, 3);
        assert_eq!(uneven.count(owner, Some(NonZeroU32::MIN)).burst, 1);
    }

    #[test]
    fn more_keys_are_no_more_than_ten_and_never_the_owner() {
        // So slow that no call is regained during the test.
        let share = Limiters::new(1, 100, 1);
        let (one, other) = (SubscriberId(Uuid::nil()), SubscriberId(Uuid::max()));
        let mut refused = 0;
        for key in 1..31 {
            for _ in 0..101 {
                let by = CalledBy::Key(Uuid::from_u128(key), one);
                // The hundred and first exceeds the key's own limit.
                refused += usize::from(matches!(share.count(by), Err((_, true))));
            }
        }
        assert!((1_900..=2_000).contains(&refused), "{refused}");
        assert!(share.count(CalledBy::Owner(one)).is_ok());
        let neighbour = CalledBy::Key(Uuid::from_u128(99), other);
        assert!(share.count(neighbour).is_ok());
    }
}
