//! A memory budget: how many bytes may be held, in total and by one holder. Room is taken as bytes arrive and refused
//! if there is none. There is no queue for it, so a request for much room doesn't block those that need little.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The whole budget is used.
    #[error("as many bytes are held as may be")]
    InAll,
    /// This holder has used its share.
    #[error("one holder has as many bytes as it may have")]
    OfHolder,
}

/// The budget, with holders of type `K`.
#[derive(Debug, Clone)]
pub struct Budget<K> {
    inner: Arc<Inner<K>>,
}

#[derive(Debug)]
struct Inner<K> {
    all: usize,
    share: usize,
    held: Mutex<Held<K>>,
    freed: Notify,
}

#[derive(Debug)]
struct Held<K> {
    all: usize,
    by_holder: HashMap<K, usize>,
}

/// The bytes of one holder, released on drop.
#[derive(Debug)]
pub struct Share<K: Eq + Hash + Copy> {
    budget: Budget<K>,
    holder: K,
    bytes: usize,
}

impl<K: Eq + Hash + Copy> Budget<K> {
    /// A budget of `all` bytes, of which one holder may have up to `share`.
    #[must_use]
    pub fn new(all: usize, share: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                all,
                share: share.min(all),
                held: Mutex::new(Held {
                    all: 0,
                    by_holder: HashMap::new(),
                }),
                freed: Notify::new(),
            }),
        }
    }

    /// An empty share for this holder.
    #[must_use]
    pub fn share(&self, holder: K) -> Share<K> {
        Share {
            budget: self.clone(),
            holder,
            bytes: 0,
        }
    }

    /// Checks whether there is room for `bytes` more at the moment.
    pub fn has_room(&self, holder: K, bytes: usize) -> Result<(), NoRoom> {
        let held = self.held();
        let own = held.by_holder.get(&holder).copied().unwrap_or_default();
        if own.saturating_add(bytes) > self.inner.share {
            Err(NoRoom::OfHolder)
        } else if held.all.saturating_add(bytes) > self.inner.all {
            Err(NoRoom::InAll)
        } else {
            Ok(())
        }
    }

    /// Takes room for `bytes`, at most a whole share, as soon as it is available.
    pub async fn take(&self, holder: K, bytes: usize) -> Share<K> {
        let mut share = self.share(holder);
        loop {
            let mut freed = pin!(self.inner.freed.notified());
            // From here on no release is missed.
            freed.as_mut().enable();
            if share.hold(bytes.min(self.inner.share)).is_ok() {
                return share;
            }
            freed.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held<K>> {
        let held = self.inner.held.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Copy> Share<K> {
    /// Sets the number of bytes held to `bytes`.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]; the number is unchanged then.
    pub fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            return self.grow(more);
        }
        self.shrink(bytes);
        Ok(())
    }

    /// Holds `more` bytes in addition.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]; the number is unchanged then.
    pub fn grow(&mut self, more: usize) -> Result<(), NoRoom> {
        let Inner { all, share, .. } = *self.budget.inner;
        self.grow_within(more, all, share)
    }

    /// Holds `more` bytes in addition, for what can be done without: half of the budget, and of the holder's share,
    /// stays free for the rest.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]; the number is unchanged then.
    pub fn grow_spare(&mut self, more: usize) -> Result<(), NoRoom> {
        let Inner { all, share, .. } = *self.budget.inner;
        self.grow_within(more, all / 2, share / 2)
    }

    fn grow_within(&mut self, more: usize, all: usize, share: usize) -> Result<(), NoRoom> {
        if more == 0 {
            return Ok(());
        }
        let mut held = self.budget.held();
        let in_all = held.all.saturating_add(more);
        let own = held.by_holder.get(&self.holder).copied();
        let own = own.unwrap_or_default().saturating_add(more);
        if own > share {
            return Err(NoRoom::OfHolder);
        }
        if in_all > all {
            return Err(NoRoom::InAll);
        }
        held.all = in_all;
        held.by_holder.insert(self.holder, own);
        drop(held);
        self.bytes += more;
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) {
        let fewer = self.bytes.saturating_sub(bytes);
        if fewer == 0 {
            return;
        }
        self.bytes -= fewer;
        let mut held = self.budget.held();
        held.all = held.all.saturating_sub(fewer);
        if let Some(own) = held.by_holder.get_mut(&self.holder) {
            *own = own.saturating_sub(fewer);
            if *own == 0 {
                held.by_holder.remove(&self.holder);
            }
        }
        drop(held);
        self.budget.inner.freed.notify_waiters();
    }
}

impl<K: Eq + Hash + Copy> Drop for Share<K> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Budget::new(10, 10);
        let mut first = budget.share('a');
        assert_eq!(first.grow(4), Ok(()));
        let mut second = budget.share('b');
        assert_eq!(second.grow(7), Err(NoRoom::InAll));
        assert_eq!(second.grow(6), Ok(()));
        assert_eq!(first.grow(1), Err(NoRoom::InAll));
        assert_eq!(second.hold(5), Ok(()));
        assert_eq!(first.grow(1), Ok(()));
        drop(first);
        drop(second);
        assert_eq!(budget.has_room('c', 10), Ok(()));
        assert!(budget.held().by_holder.is_empty());
    }

    #[test]
    fn one_holder_has_its_share_at_most() {
        let budget = Budget::new(10, 4);
        let (mut first, mut again) = (budget.share('a'), budget.share('a'));
        assert_eq!(first.grow(3), Ok(()));
        assert_eq!(again.grow(2), Err(NoRoom::OfHolder));
        assert_eq!(budget.has_room('a', 2), Err(NoRoom::OfHolder));
        assert_eq!(budget.has_room('b', 4), Ok(()));
        assert_eq!(budget.share('b').grow(4), Ok(()));
    }

    #[test]
    fn what_can_be_done_without_leaves_half() {
        let budget = Budget::new(20, 10);
        let mut spare = budget.share('a');
        assert_eq!(spare.grow_spare(6), Err(NoRoom::OfHolder));
        assert_eq!(spare.grow_spare(5), Ok(()));
        assert_eq!(budget.share('b').grow_spare(6), Err(NoRoom::OfHolder));
        let mut other = budget.share('b');
        assert_eq!(other.grow(8), Ok(()));
        assert_eq!(budget.share('c').grow_spare(1), Err(NoRoom::InAll));
        assert_eq!(budget.share('a').grow(5), Ok(()));
    }

    #[tokio::test]
    async fn who_waits_for_much_keeps_nothing_from_others() {
        let budget = Budget::new(10, 10);
        let mut held = budget.share('a');
        assert_eq!(held.grow(8), Ok(()));
        let mut large = pin!(budget.take('b', 9));
        let waits = futures_util::poll!(large.as_mut()).is_pending();
        assert!(waits, "there is no room for it");
        for _ in 0..3 {
            assert_eq!(budget.share('c').grow(2), Ok(()), "a small one has room");
        }
        drop(held);
        drop(large.await);
        assert_eq!(budget.has_room('c', 10), Ok(()));
    }

    proptest! {
        /// Whatever the sequence: never more than the total, never more than a share, and nothing in the end.
        #[test]
        fn the_bounds_hold(steps in proptest::collection::vec((0_u8..4, 0_usize..8, 0_usize..40), 0..200)) {
            let (all, share) = (60, 25);
            let budget = Budget::new(all, share);
            let mut shares: Vec<Share<u8>> = Vec::new();
            for (holder, place, bytes) in steps {
                match shares.get_mut(place) {
                    Some(share) if bytes == 0 => { share.shrink(0); }
                    Some(share) if bytes % 5 == 1 => { let _ = share.grow_spare(bytes); }
                    Some(share) => { let _ = share.hold(bytes); }
                    None => shares.push(budget.share(holder)),
                }
                let held = budget.held();
                prop_assert!(held.all <= all);
                prop_assert_eq!(held.all, shares.iter().map(|share| share.bytes).sum::<usize>());
                prop_assert!(held.by_holder.values().all(|own| (1..=share).contains(own)));
            }
            shares.clear();
            prop_assert_eq!(budget.held().all, 0);
            prop_assert!(budget.held().by_holder.is_empty());
        }
    }
}
