//! How much waits in a table that is worked off, for the metrics.

use chrono::{DateTime, Utc};

/// What waits.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Rows, 100,000 at most.
    pub entries: u32,
    /// When the row was due, or will be, that is due first.
    pub due_first: Option<DateTime<Utc>>,
}

impl Waiting {
    pub(super) fn new(entries: i64, due_first: Option<DateTime<Utc>>) -> Self {
        Self {
            entries: u32::try_from(entries).unwrap_or(u32::MAX),
            due_first,
        }
    }
}
