//! What became of the entries of a commit.

use std::collections::HashSet;

use super::{Entry, Opened, Waiting};
use mailgate_types::ids::LogId;

/// The outcome of a committed batch.
pub(super) struct Written {
    /// Openings whose keys stand for other messages.
    pub(super) twins: HashSet<LogId>,
    /// Openings whose apps have changed since.
    pub(super) stale: HashSet<LogId>,
    /// Endings that were left for the next batch.
    pub(super) left: HashSet<LogId>,
}

impl Written {
    /// Answers the callers whose entries were written; returns the others.
    pub(super) fn tell(&self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        let mut left = Vec::new();
        for one in waiting {
            match self.outcome(&one.entry) {
                // A caller that is gone loses nothing: the entry is written.
                Some(outcome) => {
                    let _ = one.answer.send(Ok(outcome));
                }
                None => left.push(one),
            }
        }
        left
    }

    /// The outcome of an entry; `None` if it was not written yet.
    fn outcome(&self, entry: &Entry) -> Option<Opened> {
        match entry {
            Entry::Open(opening, _) if self.twins.contains(&opening.id) => Some(Opened::Twin),
            Entry::Open(opening, _) if self.stale.contains(&opening.id) => Some(Opened::Stale),
            Entry::Close(ending) if self.left.contains(&ending.closing.id) => None,
            _ => Some(Opened::Here),
        }
    }
}
