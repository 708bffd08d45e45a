//! Throttles key lookups from addresses that keep failing, before they reach the database, so that unknown keys can't
//! use up the pool's connections. Keys that were valid recently are not throttled, whatever else fails at the same
//! address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::accounts::Accounts;
use crate::accounts::authenticate::PresentedKey;
use mailgate_types::neighbourhood::neighbourhood;

/// How long such a lookup waits.
const HOLD: Duration = Duration::from_secs(3);

/// How long an address is throttled after one failure too many.
const MEMORY: Duration = Duration::from_mins(1);

/// How long a key counts as known after it was valid.
const KNOWN: Duration = Duration::from_hours(1);

/// Concurrent lookups from throttled addresses.
const AT_ONCE: usize = 2;

/// The largest number of addresses and of keys kept.
const REMEMBERED: usize = 50_000;

/// The throttled addresses and the known keys.
#[derive(Debug)]
pub(in crate::accounts) struct HeldBack {
    failing: Remembered<IpAddr>,
    known: Remembered<Vec<u8>>,
    places: Arc<Semaphore>,
}

impl Default for HeldBack {
    fn default() -> Self {
        Self {
            failing: Remembered::new(MEMORY),
            known: Remembered::new(KNOWN),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl HeldBack {
    /// Records that an address has failed once too often.
    pub(in crate::accounts) fn add(&self, address: IpAddr) {
        self.failing.add(neighbourhood(address), Instant::now());
    }

    fn holds(&self, address: IpAddr, key: &PresentedKey) -> bool {
        let now = Instant::now();
        self.failing.has(&neighbourhood(address), now)
            && !key.digests.iter().any(|digest| self.known.has(digest, now))
    }
}

/// Keys seen within a period of time.
#[derive(Debug)]
struct Remembered<K> {
    time: Duration,
    seen: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Remembered<K> {
    fn new(time: Duration) -> Self {
        Self {
            time,
            seen: Mutex::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If full, start over: no repeated searching for the oldest.
    fn add(&self, key: K, now: Instant) {
        let mut seen = self.seen();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert(key, now);
    }

    fn has(&self, key: &K, now: Instant) -> bool {
        (self.seen().get(key)).is_some_and(|at| now.saturating_duration_since(*at) < self.time)
    }
}

impl Accounts {
    /// Waits before the lookup of a key from an address that keeps failing. The caller keeps the returned permit
    /// until the lookup is done.
    pub async fn hold_back(
        &self,
        address: IpAddr,
        key: &PresentedKey,
    ) -> Option<OwnedSemaphorePermit> {
        if !self.held_back.holds(address, key) {
            return None;
        }
        tokio::time::sleep(HOLD).await;
        Arc::clone(&self.held_back.places)
            .acquire_owned()
            .await
            .ok()
    }

    /// Records that a key was valid.
    pub fn remember(&self, key: &PresentedKey) {
        let now = Instant::now();
        for digest in &key.digests {
            if !self.held_back.known.has(digest, now) {
                self.held_back.known.add(digest.clone(), now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PresentedKey {
        PresentedKey {
            digests: vec![text.as_bytes().to_vec()],
            hash: Vec::new(),
            address: Some([192, 0, 2, 1].into()),
        }
    }

    #[test]
    fn only_unknown_keys_of_failing_addresses_are_held_back() {
        let held_back = HeldBack::default();
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!(!held_back.holds(one, &key("a")));
        held_back.add(one);
        assert!(held_back.holds(one, &key("a")));
        assert!(!held_back.holds(two, &key("a")));
        held_back.known.add(b"a".to_vec(), Instant::now());
        assert!(!held_back.holds(one, &key("a")));
        assert!(held_back.holds(one, &key("b")));
    }

    #[test]
    fn what_was_seen_is_forgotten_and_bounded() {
        let seen = Remembered::new(MEMORY);
        let now = Instant::now();
        for number in 0..=REMEMBERED {
            seen.add(number, now);
        }
        assert_eq!(seen.seen().len(), 1);
        assert!(seen.has(&REMEMBERED, now));
        assert!(!seen.has(&REMEMBERED, now + MEMORY));
    }
}
