//! How many bytes of messages the gateway holds at once. Past it, further messages are refused at
//! once, so that their senders keep them: memory is bounded whatever comes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes are counted in pieces of this size.
const UNIT: usize = 1024;

/// The bytes that may be held.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    all: u32,
}

/// Bytes that are held, until it is dropped.
#[derive(Debug, Default)]
pub struct Share {
    permit: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Holds both.
    pub fn join(&mut self, other: Self) {
        match (&mut self.permit, other.permit) {
            (Some(mine), Some(other)) => mine.merge(other),
            (mine, other) => *mine = mine.take().or(other),
        }
    }
}

impl Budget {
    /// Room for `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let all = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
        let places = usize::try_from(all).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            all,
        }
    }

    /// Takes room for `bytes`, where there is any.
    #[must_use]
    pub fn try_take(&self, bytes: usize) -> Option<Share> {
        let units = u32::try_from(units(bytes)).ok()?;
        let permit = Arc::clone(&self.units).try_acquire_many_owned(units);
        if permit.is_err() {
            metrics::counter!("mailgate_overloaded_total").increment(1);
        }
        Some(Share {
            permit: Some(permit.ok()?),
        })
    }

    /// Takes room for `bytes`, all there is at most, as soon as there is any.
    pub async fn take(&self, bytes: usize) -> Share {
        let units = u32::try_from(units(bytes))
            .unwrap_or(u32::MAX)
            .min(self.all);
        // Never closed, so it comes.
        Share {
            permit: (Arc::clone(&self.units).acquire_many_owned(units).await).ok(),
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Budget::new(10 * UNIT);
        let mut first = budget.try_take(4 * UNIT).unwrap_or_default();
        assert!(budget.try_take(7 * UNIT).is_none());
        first.join(budget.try_take(6 * UNIT).unwrap_or_default());
        assert!(budget.try_take(1).is_none());
        drop(first);
        assert!(budget.try_take(10 * UNIT).is_some());
    }
}
