//! The length of a work queue, for the metrics: of the spool (`spool::backlog`), of webhooks (`webhook_queue::backlog`),
//! and others.

use chrono::{DateTime, Utc};

/// The waiting rows.
#[derive(Debug, Clone, Copy)]
pub struct QueueLength {
    /// Rows, 100,000 at most.
    pub entries: u32,
    /// When the first row was or will be due.
    pub due_first: Option<DateTime<Utc>>,
}

impl QueueLength {
    pub(super) fn new(entries: i64, due_first: Option<DateTime<Utc>>) -> Self {
        Self {
            entries: u32::try_from(entries).unwrap_or(u32::MAX),
            due_first,
        }
    }
}
