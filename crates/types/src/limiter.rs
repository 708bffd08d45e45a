//! Rate limits by key, in bounded memory: keys with a full quota are dropped once a minute, and not scanned in between.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{DefaultKeyedStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};

/// How often keys are dropped.
pub(crate) const SWEEP: Duration = Duration::from_mins(1);

/// A rate limiter by key. `C` is the clock, which tests replace.
#[derive(Debug)]
pub struct KeyedLimiter<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, Keys<K>, C, StateInformationMiddleware>,
    keys: Keys<K>,
    clock: C,
    most: usize,
    next_sweep: Mutex<C::Instant>,
}

/// The tracked keys.
#[derive(Debug)]
struct Keys<K: Hash + Eq + Clone>(Arc<DefaultKeyedStateStore<K>>);

impl<K: Hash + Eq + Clone> StateStore for Keys<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Keys<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.as_ref().retain_recent(drop_below);
    }

    fn shrink_to_fit(&self) {
        self.0.as_ref().shrink_to_fit();
    }

    fn len(&self) -> usize {
        self.0.as_ref().len()
    }

    fn is_empty(&self) -> bool {
        self.0.as_ref().is_empty()
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> KeyedLimiter<K, C> {
    /// Tracks at most `most` keys.
    pub fn new(quota: Quota, most: usize, clock: C) -> Self {
        let keys = Arc::<DefaultKeyedStateStore<K>>::default();
        Self {
            limiter: RateLimiter::new(quota, Keys(Arc::clone(&keys)), clock.clone()),
            keys: Keys(keys),
            next_sweep: Mutex::new(clock.now() + SWEEP.into()),
            clock,
            most,
        }
    }

    /// Counts one event for a key and returns how many are left. While the limiter is full, tracked keys are
    /// unaffected, and a new key counts as over its limit: a flood of keys neither gets through nor displaces known
    /// ones.
    ///
    /// # Errors
    ///
    /// The time to wait until the next one is allowed.
    pub fn count(&self, key: &K) -> Result<u32, Duration> {
        self.count_if_room(key).unwrap_or(Err(SWEEP))
    }

    /// As [`KeyedLimiter::count`]; `None`, and nothing counted, for a new key while the limiter is full.
    pub(crate) fn count_if_room(&self, key: &K) -> Option<Result<u32, Duration>> {
        if self.held() >= self.most && !self.holds(key) {
            return None;
        }
        Some(match self.limiter.check_key(key) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(refusal) => Err(refusal.wait_time_from(self.clock.now())),
        })
    }

    /// Whether a key is tracked.
    pub(crate) fn holds(&self, key: &K) -> bool {
        self.keys.0.contains_key(key)
    }

    /// The number of tracked keys.
    pub fn held(&self) -> usize {
        self.sweep();
        self.limiter.len()
    }

    fn sweep(&self) {
        let now = self.clock.now();
        {
            let next = self.next_sweep.lock();
            let mut next = next.unwrap_or_else(PoisonError::into_inner);
            if now < *next {
                return;
            }
            *next = now + SWEEP.into();
        }
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::num::NonZeroU32;

    use governor::clock::FakeRelativeClock;
    use proptest::prelude::*;

    use super::*;

    fn limiter(clock: &FakeRelativeClock) -> KeyedLimiter<u32, FakeRelativeClock> {
        let quota = Quota::per_minute(NonZeroU32::new(2).unwrap());
        KeyedLimiter::new(quota, 1_000, clock.clone())
    }

    #[test]
    fn keys_are_forgotten_with_time_and_not_before() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        for key in 0..999 {
            assert_eq!(limiter.count(&key), Ok(1));
        }
        clock.advance(Duration::from_secs(59));
        for _ in 0..2 {
            assert!(limiter.count(&7).is_ok());
        }
        assert_eq!(limiter.limiter.len(), 999, "not gone through in between");
        clock.advance(Duration::from_secs(1));
        assert!(limiter.count(&7).is_err(), "what counts isn't forgotten");
        assert_eq!(limiter.limiter.len(), 1);
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_room_and_passes() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        let taken = (0..10_000).filter(|key| limiter.count(key).is_ok()).count();
        assert_eq!((taken, limiter.limiter.len()), (1_000, 1_000));
        assert_eq!(limiter.count(&10_001), Err(SWEEP), "nor is it let through");
        assert_eq!(limiter.count(&1), Ok(0), "who was there goes on");
        assert!(limiter.count(&1).is_err(), "with its limit");
        clock.advance(SWEEP);
        assert_eq!(limiter.count(&10_001), Ok(1));
        assert_eq!(
            limiter.limiter.len(),
            2,
            "with the one that was at its limit"
        );
    }

    proptest! {
        #[test]
        fn it_holds_the_keys_of_the_last_minutes_alone(
            steps in prop::collection::vec((0_u64..90, 0_u32..50), 1..300),
        ) {
            let clock = FakeRelativeClock::default();
            let limiter = limiter(&clock);
            let (mut time, mut counted) = (0, Vec::new());
            for (pause, key) in steps {
                clock.advance(Duration::from_secs(pause));
                time += pause;
                let _ = limiter.count(&key);
                counted.push((time, key));
                let lately = counted.iter().filter(|(at, _)| at + 180 > time);
                let keys: std::collections::HashSet<u32> = lately.map(|(_, key)| *key).collect();
                prop_assert!(limiter.limiter.len() <= keys.len());
            }
        }
    }
}
