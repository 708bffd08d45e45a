//! Turns for queries that take longer than a page: one per subscriber at a time, and a few in total, so that no
//! subscriber can use up the database's connections.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mailgate_types::ids::SubscriberId;

/// The turns of a process.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    taken: Arc<Mutex<HashSet<SubscriberId>>>,
    most: usize,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    subscriber: SubscriberId,
}

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// The subscriber has one in progress.
    #[error("the subscriber has one in progress")]
    OfSubscriber,
    /// All are taken by others.
    #[error("all are taken")]
    InAll,
}

impl Turns {
    /// This many in total.
    pub(super) fn new(most: usize) -> Self {
        Self {
            taken: Arc::default(),
            most,
        }
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<SubscriberId>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for a subscriber, if there is one now.
    pub(super) fn take(&self, subscriber: SubscriberId) -> Result<Turn, NoTurn> {
        let mut taken = self.taken();
        if taken.contains(&subscriber) {
            return Err(NoTurn::OfSubscriber);
        }
        if taken.len() >= self.most {
            return Err(NoTurn::InAll);
        }
        taken.insert(subscriber);
        drop(taken);
        Ok(Turn {
            turns: self.clone(),
            subscriber,
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.taken().remove(&self.subscriber);
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;

    #[test]
    fn one_for_each_and_so_many_in_all() {
        let turns = Turns::new(2);
        let [ada, bob, carol] = [(); 3].map(|()| SubscriberId::at(Utc::now()));
        let of_ada = turns.take(ada);
        assert_eq!(turns.take(ada).err(), Some(NoTurn::OfSubscriber));
        let of_bob = turns.take(bob);
        assert!(of_bob.is_ok());
        assert_eq!(turns.take(carol).err(), Some(NoTurn::InAll));
        drop(of_ada);
        assert!(turns.take(carol).is_ok() && turns.take(ada).is_ok());
    }
}
