//! Slots that several holders share, limited in total and per holder. A holder at its own limit waits without taking a
//! shared slot from others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// No slot became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all places are in use")]
pub struct Busy;

/// The slots, for holders of type `K`.
#[derive(Debug, Clone)]
pub struct SharedPlaces<K> {
    all: Arc<Semaphore>,
    each: usize,
    holders: Holders<K>,
}

type Holders<K> = Arc<Mutex<HashMap<K, Holder>>>;

/// A holder that has slots or waits for some.
#[derive(Debug)]
struct Holder {
    own: Arc<Semaphore>,
    joined: usize,
}

/// A holder's claim to a slot; it counts until it is dropped.
#[derive(Debug)]
pub struct Joined<K: Eq + Hash> {
    holders: Holders<K>,
    key: K,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub struct Place {
    // Neither semaphore is ever closed.
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl<K: Eq + Hash + Clone> SharedPlaces<K> {
    /// Creates `all` slots, with up to `each` per holder.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            holders: Arc::default(),
        }
    }

    /// Creates `each` slots per holder, without a limit in total.
    #[must_use]
    pub fn unshared(each: usize) -> Self {
        Self::new(Semaphore::MAX_PERMITS, each)
    }

    /// Creates a claim for this holder, unless it has `most` claims already.
    #[must_use]
    pub fn join(&self, key: K, most: usize) -> Option<Joined<K>> {
        let mut holders = lock(&self.holders);
        let holder = holders.entry(key.clone()).or_insert_with(|| Holder {
            own: Arc::new(Semaphore::new(self.each)),
            joined: 0,
        });
        if holder.joined >= most {
            return None;
        }
        holder.joined += 1;
        Some(Joined {
            holders: Arc::clone(&self.holders),
            key,
            own: Arc::clone(&holder.own),
            all: Arc::clone(&self.all),
        })
    }

    /// Takes a slot for this holder, if one is free within `patience`.
    ///
    /// # Errors
    ///
    /// [`Busy`].
    pub async fn take_within(
        &self,
        key: K,
        patience: Duration,
    ) -> Result<(Place, Joined<K>), Busy> {
        let joined = self.join(key, usize::MAX).ok_or(Busy)?;
        let place = joined.place_within(patience).await?;
        Ok((place, joined))
    }
}

impl<K: Eq + Hash> Joined<K> {
    /// Takes a slot, as soon as one is free.
    pub async fn place(&self) -> Place {
        // The holder's own limit first: waiting for it must not occupy a shared slot.
        let own = Arc::clone(&self.own).acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place {
            _permits: [own, all],
        }
    }

    /// Takes a slot, if one is free within `patience`.
    ///
    /// # Errors
    ///
    /// [`Busy`].
    pub async fn place_within(&self, patience: Duration) -> Result<Place, Busy> {
        timeout(patience, self.place()).await.map_err(|_| Busy)
    }
}

impl<K: Eq + Hash> Drop for Joined<K> {
    fn drop(&mut self) {
        let mut holders = lock(&self.holders);
        if let Some(holder) = holders.get_mut(&self.key) {
            holder.joined -= 1;
            if holder.joined == 0 {
                holders.remove(&self.key);
            }
        }
    }
}

fn lock<K>(holders: &Holders<K>) -> MutexGuard<'_, HashMap<K, Holder>> {
    holders.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn one_holder_leaves_places_to_the_others() -> Result<(), Busy> {
        let places = SharedPlaces::new(4, 2);
        let mut of_one = Vec::new();
        for _ in 0..2 {
            of_one.push(places.take_within('a', SOON).await?);
        }
        assert_eq!(places.take_within('a', SOON).await.err(), Some(Busy));
        let of_other = places.take_within('b', SOON).await?;
        let third = places.take_within('c', SOON).await?;
        assert_eq!(
            places.take_within('d', SOON).await.err(),
            Some(Busy),
            "four in all"
        );
        drop(third);
        // Waiting for one's own limit takes no slot from others.
        let joined = places.join('a', 3).ok_or(Busy)?;
        assert!(places.join('a', 3).is_none());
        let waiting = tokio::spawn(async move { (joined.place().await, joined) });
        tokio::task::yield_now().await;
        drop(places.take_within('d', SOON).await?);
        of_one.pop();
        let waited = waiting.await;
        drop((of_one, of_other, waited));
        assert!(lock(&places.holders).is_empty());
        assert_eq!(places.all.available_permits(), 4);
        Ok(())
    }
}
