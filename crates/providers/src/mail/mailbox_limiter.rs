//! Limits the concurrent submissions of a mailbox: the provider counts them across all gateways, so each gateway gets
//! its share of the slots.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use mailgate_types::ids::CredentialId;

/// The slots of all mailboxes of a provider.
#[derive(Debug)]
pub struct MailboxLimiter {
    by_mailbox: Mutex<HashMap<CredentialId, Arc<Semaphore>>>,
    per_mailbox: usize,
    /// The number of gateways that share them.
    living: AtomicUsize,
}

/// A submission's slot, released on drop.
#[derive(Debug)]
pub struct MailboxPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl MailboxLimiter {
    /// Creates a limiter with `per_mailbox` slots for each mailbox.
    #[must_use]
    pub fn new(per_mailbox: usize) -> Self {
        Self {
            by_mailbox: Mutex::default(),
            per_mailbox,
            living: AtomicUsize::new(1),
        }
    }

    /// Sets the number of gateways that share the slots; each gets at least one.
    pub fn share_among(&self, living: usize) {
        self.living.store(living.max(1), Ordering::Relaxed);
    }

    /// The number of slots that one submission takes, such that as many submissions fit as the share allows.
    fn weight(&self) -> u32 {
        let share = (self.per_mailbox / self.living.load(Ordering::Relaxed)).max(1);
        u32::try_from(self.per_mailbox / share).unwrap_or(u32::MAX)
    }

    /// Waits for a slot. The caller bounds the wait.
    pub async fn take(&self, credential: CredentialId) -> MailboxPermit {
        let places = Arc::clone(
            self.by_mailbox()
                .entry(credential)
                .or_insert_with(|| Arc::new(Semaphore::new(self.per_mailbox))),
        );
        MailboxPermit {
            // The semaphore is never closed, so this succeeds.
            _permit: places.acquire_many_owned(self.weight()).await.ok(),
        }
    }

    /// Drops mailboxes without submissions.
    pub fn drop_unused(&self) {
        self.by_mailbox()
            .retain(|_, places| Arc::strong_count(places) > 1);
    }

    fn by_mailbox(&self) -> MutexGuard<'_, HashMap<CredentialId, Arc<Semaphore>>> {
        self.by_mailbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn mailbox(number: u128) -> CredentialId {
        CredentialId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn each_mailbox_has_its_own() {
        let places = MailboxLimiter::new(2);
        let (ada, bob) = (mailbox(1), mailbox(2));
        let first = places.take(ada).now_or_never();
        let second = places.take(ada).now_or_never();
        assert!(first.is_some() && second.is_some());
        assert!(places.take(ada).now_or_never().is_none());
        assert!(places.take(bob).now_or_never().is_some());
        drop(first);
        assert!(places.take(ada).now_or_never().is_some());
    }

    #[test]
    fn gateways_share_the_places() {
        for (per_mailbox, living, share) in [
            (4, 1, 4),
            (4, 2, 2),
            (4, 3, 1),
            (4, 9, 1),
            (1, 3, 1),
            (5, 2, 2),
            (10, 3, 3),
            (23, 3, 7),
        ] {
            let places = MailboxLimiter::new(per_mailbox);
            places.share_among(living);
            let taken: Vec<_> =
                std::iter::from_fn(|| places.take(mailbox(1)).now_or_never()).collect();
            assert_eq!(taken.len(), share, "{per_mailbox} among {living}");
            drop(taken);
            places.share_among(1);
            let taken = std::iter::from_fn(|| places.take(mailbox(1)).now_or_never());
            assert_eq!(taken.collect::<Vec<_>>().len(), per_mailbox);
        }
    }

    #[test]
    fn places_in_use_are_not_forgotten() {
        let places = MailboxLimiter::new(1);
        let ada = mailbox(1);
        let place = places.take(ada).now_or_never();
        places.drop_unused();
        assert!(places.take(ada).now_or_never().is_none());
        drop(place);
        places.drop_unused();
        assert!(places.by_mailbox().is_empty());
        assert!(places.take(ada).now_or_never().is_some());
    }
}
