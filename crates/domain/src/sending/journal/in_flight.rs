//! The messages that this process is working on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mailgate_types::ids::LogId;

/// Message ids, and how often each is held.
#[derive(Debug, Clone, Default)]
pub(in crate::sending) struct InFlight {
    by_id: Arc<Mutex<HashMap<LogId, u32>>>,
}

/// Marks a message as being worked on until it is dropped.
#[derive(Debug)]
pub(in crate::sending) struct Hold {
    held: InFlight,
    id: LogId,
}

impl InFlight {
    fn by_id(&self) -> MutexGuard<'_, HashMap<LogId, u32>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of the messages being worked on.
    pub(in crate::sending) fn ids(&self) -> Vec<LogId> {
        self.by_id().keys().copied().collect()
    }

    pub(in crate::sending) fn hold(&self, id: LogId) -> Hold {
        *self.by_id().entry(id).or_default() += 1;
        Hold {
            held: self.clone(),
            id,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut by_id = self.held.by_id();
        if let Some(count) = by_id.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                by_id.remove(&self.id);
            }
        }
    }
}
