//! Holds the look-ups of addresses back that keep failing, before they reach the database: a key that nobody knows
//! is worth no connection of the pool. Keys that opened something lately are not held back, whoever else fails at
//! the same address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Accounts;
use super::authenticate::PresentedKey;
use mailgate_types::neighbourhood::neighbourhood;

/// How long such a look-up waits.
const HOLD: Duration = Duration::from_secs(3);

/// How long an address counts as one that keeps failing, after a failure too many.
const MEMORY: Duration = Duration::from_mins(1);

/// How long a key counts as one that opens something.
const KNOWN: Duration = Duration::from_hours(1);

/// Look-ups of such addresses at once.
const AT_ONCE: usize = 2;

/// Addresses and keys that are remembered at most.
const REMEMBERED: usize = 50_000;

/// Who is held back, and who isn't.
#[derive(Debug)]
pub(super) struct HeldBack {
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
    /// This address has failed once too often.
    pub(super) fn add(&self, address: IpAddr) {
        self.failing.add(neighbourhood(address), Instant::now());
    }

    fn holds(&self, address: IpAddr, key: &PresentedKey) -> bool {
        let now = Instant::now();
        self.failing.has(&neighbourhood(address), now)
            && !key.digests.iter().any(|digest| self.known.has(digest, now))
    }
}

/// What was seen within some time.
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

    /// Where there are too many, all begin anew: nothing is searched through again and again.
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
    /// Waits before a key is looked up that comes from an address that keeps failing. The look-up keeps what this
    /// returns.
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

    /// This key has opened something.
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
