//! Places for attempts of stored messages. A mailbox has a few of them at a time, so that one with a thousand messages
//! due, or with a slow provider, leaves places to the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use mailgate_types::ids::CredentialId;

/// Stored messages that one process tries concurrently.
const PLACES: usize = 32;

/// Of these, those of one mailbox.
pub(super) const PER_MAILBOX: u32 = 8;

/// The places of a process.
#[derive(Debug, Clone)]
pub(super) struct RetryPlaces {
    places: Arc<Semaphore>,
    by_mailbox: Arc<Mutex<HashMap<CredentialId, u32>>>,
    freed: Arc<Notify>,
}

/// A place that nobody has yet.
#[derive(Debug)]
pub(super) struct FreePlace {
    places: RetryPlaces,
    permit: OwnedSemaphorePermit,
}

/// A place of a mailbox, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: RetryPlaces,
    mailbox: CredentialId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for RetryPlaces {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            by_mailbox: Arc::default(),
            freed: Arc::default(),
        }
    }
}

impl RetryPlaces {
    fn by_mailbox(&self) -> MutexGuard<'_, HashMap<CredentialId, u32>> {
        self.by_mailbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// All that are free.
    pub(super) fn free(&self) -> Vec<FreePlace> {
        std::iter::from_fn(|| Arc::clone(&self.places).try_acquire_owned().ok())
            .map(|permit| FreePlace {
                places: self.clone(),
                permit,
            })
            .collect()
    }

    /// How many each mailbox has, if it has any.
    pub(super) fn taken(&self) -> Vec<(CredentialId, u32)> {
        let by_mailbox = self.by_mailbox();
        by_mailbox.iter().map(|(id, count)| (*id, *count)).collect()
    }

    /// Returns when a place has been freed since the last call.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl FreePlace {
    /// Gives it to a mailbox.
    pub(super) fn of(self, mailbox: CredentialId) -> Place {
        *self.places.by_mailbox().entry(mailbox).or_default() += 1;
        Place {
            places: self.places,
            mailbox,
            permit: Some(self.permit),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_mailbox = self.places.by_mailbox();
        if let Some(count) = by_mailbox.get_mut(&self.mailbox) {
            *count -= 1;
            if *count == 0 {
                by_mailbox.remove(&self.mailbox);
            }
        }
        drop(by_mailbox);
        // Before anybody is told of it.
        self.permit = None;
        self.places.freed.notify_one();
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
    async fn a_mailbox_has_a_place_until_it_is_dropped() {
        let places = RetryPlaces::default();
        let (ada, bob) = (mailbox(1), mailbox(2));
        let mut free = places.free();
        assert_eq!(free.len(), PLACES);
        assert!(places.free().is_empty());
        let mut of_ada: Vec<Place> = free
            .drain(..PER_MAILBOX as usize)
            .map(|place| place.of(ada))
            .collect();
        let of_bob = free.pop().map(|place| place.of(bob));
        assert_eq!(places.taken().len(), 2);
        assert!(places.taken().contains(&(ada, PER_MAILBOX)));
        of_ada.pop();
        assert!(places.taken().contains(&(ada, PER_MAILBOX - 1)));
        places.freed().await;
        assert_eq!(places.free().len(), 1);
        drop((free, of_ada, of_bob));
        assert!(places.by_mailbox().is_empty());
        assert_eq!(places.free().len(), PLACES);
    }
}
