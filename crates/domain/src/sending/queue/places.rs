//! Limits concurrent attempts of stored messages. A mailbox, and all mailboxes of a subscriber together, get a few
//! places at a time, so that one with a thousand messages due, or with a slow provider, doesn't block the others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use mailgate_storage::spool::Room;
use mailgate_types::ids::{CredentialId, SubscriberId};

/// Stored messages that one process tries concurrently.
const PLACES: usize = 32;

/// Of these, the maximum of one mailbox.
const PER_MAILBOX: u32 = 8;

/// The number of places in use, by mailbox and by subscriber.
#[derive(Debug, Default)]
struct Taken {
    by_mailbox: HashMap<CredentialId, u32>,
    by_subscriber: HashMap<SubscriberId, u32>,
}

/// The places of a process.
#[derive(Debug, Clone)]
pub(in crate::sending) struct RetryPlaces {
    places: Arc<Semaphore>,
    taken: Arc<Mutex<Taken>>,
    freed: Arc<Notify>,
}

/// A free place.
#[derive(Debug)]
pub(in crate::sending) struct FreePlace {
    places: RetryPlaces,
    permit: OwnedSemaphorePermit,
}

/// A place of a mailbox, until it is dropped.
#[derive(Debug)]
pub(in crate::sending) struct Place {
    places: RetryPlaces,
    mailbox: CredentialId,
    subscriber: Option<SubscriberId>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for RetryPlaces {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            taken: Arc::default(),
            freed: Arc::default(),
        }
    }
}

impl RetryPlaces {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All free places.
    pub(in crate::sending) fn free(&self) -> Vec<FreePlace> {
        std::iter::from_fn(|| Arc::clone(&self.places).try_acquire_owned().ok())
            .map(|permit| FreePlace {
                places: self.clone(),
                permit,
            })
            .collect()
    }

    /// The share of the free places that may be taken: a subscriber may hold at most as many as it leaves free.
    pub(in crate::sending) fn room(&self, free: usize) -> Room {
        let taken = self.taken();
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        let most = |own: u32| (free.saturating_add(own) / 2).max(1);
        let of_mailbox = |(id, count): (&CredentialId, &u32)| (*id, *count);
        let of_subscriber = |(id, own): (&SubscriberId, &u32)| (*id, *own, most(*own));
        Room {
            messages: free.into(),
            per_mailbox: PER_MAILBOX.into(),
            taken: taken.by_mailbox.iter().map(of_mailbox).collect(),
            per_subscriber: most(0).into(),
            taken_by: taken.by_subscriber.iter().map(of_subscriber).collect(),
        }
    }

    /// Returns when a place has been freed since the last call.
    pub(in crate::sending) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl FreePlace {
    /// Gives it to a mailbox of this subscriber's.
    pub(in crate::sending) fn of(
        self,
        mailbox: CredentialId,
        subscriber: Option<SubscriberId>,
    ) -> Place {
        let mut taken = self.places.taken();
        *taken.by_mailbox.entry(mailbox).or_default() += 1;
        if let Some(subscriber) = subscriber {
            *taken.by_subscriber.entry(subscriber).or_default() += 1;
        }
        drop(taken);
        Place {
            places: self.places,
            mailbox,
            subscriber,
            permit: Some(self.permit),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        give_back(&mut taken.by_mailbox, self.mailbox);
        if let Some(subscriber) = self.subscriber {
            give_back(&mut taken.by_subscriber, subscriber);
        }
        drop(taken);
        // Before others are notified.
        self.permit = None;
        self.places.freed.notify_one();
    }
}

fn give_back<K: Eq + Hash>(counts: &mut HashMap<K, u32>, id: K) {
    if let Entry::Occupied(mut count) = counts.entry(id) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use mailgate_types::ids::uuid_at;

    use super::*;

    fn mailbox(second: i64) -> CredentialId {
        CredentialId(uuid_at(
            chrono::DateTime::from_timestamp(second, 0).unwrap_or_default(),
        ))
    }

    #[tokio::test]
    async fn a_place_is_held_until_it_is_dropped() {
        let places = RetryPlaces::default();
        let (ada, bob) = (mailbox(1), mailbox(2));
        let owner = SubscriberId(mailbox(1).0);
        let mut free = places.free();
        assert_eq!(free.len(), PLACES);
        assert!(places.free().is_empty());
        let mut of_ada: Vec<Place> = free
            .drain(..PER_MAILBOX as usize)
            .map(|place| place.of(ada, Some(owner)))
            .collect();
        let of_bob = free.pop().map(|place| place.of(bob, Some(owner)));
        let of_nobody = free.pop().map(|place| place.of(mailbox(3), None));
        let room = places.room(5);
        assert_eq!((room.messages, room.taken.len()), (5, 3));
        assert!(room.taken.contains(&(ada, PER_MAILBOX)));
        assert_eq!(room.per_subscriber, 2);
        assert_eq!(room.taken_by, [(owner, PER_MAILBOX + 1, 7)]);
        of_ada.pop();
        assert!(places.room(5).taken.contains(&(ada, PER_MAILBOX - 1)));
        places.freed().await;
        assert_eq!(places.free().len(), 1);
        drop((free, of_ada, of_bob, of_nobody));
        assert!(places.taken().by_mailbox.is_empty() && places.taken().by_subscriber.is_empty());
        assert_eq!(places.free().len(), PLACES);
    }
}
