//! A memory budget: limits the bytes held, in total and per holder. Room is reserved as bytes arrive, or refused if
//! there is none. There is no queue, so a large request doesn't block small ones.
//!
//! Beyond its fixed share, a holder may take no more than is left free (the dynamic threshold of Choudhury and Hahne,
//! 1998), so a new holder always finds room.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    limits: Limits,
    held: Mutex<Held<K>>,
}

/// The limits in total and per holder.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: usize,
    share: usize,
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

impl<K: Eq + Hash + Copy> Held<K> {
    /// Whether this holder may have `more` bytes in addition.
    fn admits(&self, holder: K, more: usize, Limits { all, share }: Limits) -> Result<(), NoRoom> {
        let own = self.by_holder.get(&holder).copied().unwrap_or_default();
        let (own_then, all_then) = (own.saturating_add(more), self.all.saturating_add(more));
        if own_then > share {
            return Err(NoRoom::OfHolder);
        }
        let Some(free) = all.checked_sub(all_then) else {
            return Err(NoRoom::InAll);
        };
        let is_alone = self.all == own;
        if own_then > free && !is_alone {
            return Err(NoRoom::OfHolder);
        }
        Ok(())
    }
}

impl<K: Eq + Hash + Copy> Budget<K> {
    /// Creates a budget of `all` bytes, with up to `share` per holder.
    #[must_use]
    pub fn new(all: usize, share: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                limits: Limits {
                    all,
                    share: share.min(all),
                },
                held: Mutex::new(Held {
                    all: 0,
                    by_holder: HashMap::new(),
                }),
            }),
        }
    }

    /// Creates an empty share for this holder.
    #[must_use]
    pub fn share(&self, holder: K) -> Share<K> {
        Share {
            budget: self.clone(),
            holder,
            bytes: 0,
        }
    }

    /// The maximum number of bytes per holder.
    #[must_use]
    pub fn share_bytes(&self) -> usize {
        self.inner.limits.share
    }

    /// Checks whether there is room for `bytes` more at the moment.
    pub fn has_room(&self, holder: K, bytes: usize) -> Result<(), NoRoom> {
        self.held().admits(holder, bytes, self.inner.limits)
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

    /// Holds `more` additional bytes.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]; the number is unchanged then.
    pub fn grow(&mut self, more: usize) -> Result<(), NoRoom> {
        self.grow_within(more, self.budget.inner.limits)
    }

    /// Holds `more` additional bytes for optional data: half of the budget, and of the holder's share, stays free for
    /// other data.
    ///
    /// # Errors
    ///
    /// [`NoRoom`]; the number is unchanged then.
    pub fn grow_spare(&mut self, more: usize) -> Result<(), NoRoom> {
        let Limits { all, share } = self.budget.inner.limits;
        let (all, share) = (all / 2, share / 2);
        self.grow_within(more, Limits { all, share })
    }

    fn grow_within(&mut self, more: usize, limits: Limits) -> Result<(), NoRoom> {
        if more == 0 {
            return Ok(());
        }
        let mut held = self.budget.held();
        held.admits(self.holder, more, limits)?;
        held.all += more;
        *held.by_holder.entry(self.holder).or_default() += more;
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
        let budget = Budget::new(20, 20);
        let mut first = budget.share('a');
        assert_eq!(first.grow(4), Ok(()));
        let mut second = budget.share('b');
        assert_eq!(second.grow(17), Err(NoRoom::InAll));
        assert_eq!(second.grow(8), Ok(()));
        assert_eq!(second.hold(5), Ok(()));
        assert_eq!(first.grow(1), Ok(()));
        drop(first);
        drop(second);
        assert_eq!(budget.has_room('c', 20), Ok(()));
        assert!(budget.held().by_holder.is_empty());
    }

    #[test]
    fn one_holder_has_its_share_at_most() {
        let budget = Budget::new(10, 4);
        let (mut first, mut again) = (budget.share('a'), budget.share('a'));
        assert_eq!(first.grow(3), Ok(()));
        assert_eq!(again.grow(2), Err(NoRoom::OfHolder));
        assert_eq!(budget.has_room('a', 2), Err(NoRoom::OfHolder));
        assert_eq!(budget.has_room('b', 3), Ok(()));
        assert_eq!(budget.share('b').grow(3), Ok(()));
    }

    #[test]
    fn however_many_take_all_they_can_a_newcomer_finds_room() {
        let budget = Budget::new(1_024, 256);
        let mut hostile: Vec<Share<u32>> = (0..8).map(|holder| budget.share(holder)).collect();
        for share in &mut hostile {
            while share.grow(1).is_ok() {}
        }
        assert_eq!(budget.share(9).grow(1), Ok(()));
        assert_eq!(hostile[0].bytes, 256);
    }

    #[test]
    fn what_can_be_done_without_leaves_half() {
        let budget = Budget::new(40, 20);
        let mut spare = budget.share('a');
        assert_eq!(spare.grow_spare(11), Err(NoRoom::OfHolder));
        assert_eq!(spare.grow_spare(10), Ok(()));
        let mut other = budget.share('b');
        assert_eq!(other.grow(12), Ok(()));
        assert_eq!(budget.share('c').grow_spare(1), Err(NoRoom::InAll));
        assert_eq!(budget.share('c').grow(5), Ok(()));
    }

    proptest! {
        /// For any sequence: the total and the shares are never exceeded, a holder that has just grown has left as much
        /// free as it holds, and nothing is held in the end.
        #[test]
        fn the_bounds_hold(steps in proptest::collection::vec((0_u8..4, 0_usize..8, 0_usize..40), 0..200)) {
            let (all, share) = (60, 25);
            let budget = Budget::new(all, share);
            let mut shares: Vec<Share<u8>> = Vec::new();
            for (holder, place, bytes) in steps {
                let grown = match shares.get_mut(place) {
                    Some(share) if bytes == 0 => { share.shrink(0); None }
                    Some(share) if bytes % 5 == 1 => share.grow_spare(bytes).ok().map(|()| share.holder),
                    Some(share) => {
                        let before = share.bytes;
                        let held = share.hold(bytes);
                        held.ok().filter(|()| bytes > before).map(|()| share.holder)
                    }
                    None => {
                        shares.push(budget.share(holder));
                        None
                    }
                };
                let held = budget.held();
                prop_assert!(held.all <= all);
                prop_assert_eq!(held.all, shares.iter().map(|share| share.bytes).sum::<usize>());
                prop_assert!(held.by_holder.values().all(|own| (1..=share).contains(own)));
                if let Some(holder) = grown {
                    let own = held.by_holder.get(&holder).copied().unwrap_or_default();
                    prop_assert!(own <= all - held.all || own == held.all);
                }
            }
            shares.clear();
            prop_assert_eq!(budget.held().all, 0);
            prop_assert!(budget.held().by_holder.is_empty());
        }
    }
}
