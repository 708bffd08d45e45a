//! Remembers which apps have webhook listeners, as far as the journal has seen: a hint for choosing its statement.
//! The database decides, so a stale hint costs a second statement and nothing else.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::batch::Batch;
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::log_status::LogStatus;

/// How long an app is remembered as having listeners before the database is queried again.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Apps whose messages were left behind by the statement for apps without listeners.
#[derive(Debug, Default)]
pub(super) struct Listened {
    since: HashMap<AppId, Instant>,
}

impl Listened {
    /// Whether, as far as is known, all endings are of messages that were sent at their first attempt and whose apps
    /// have no listeners.
    pub(super) fn is_only_sent(&self, batch: &Batch<'_>) -> bool {
        batch.endings.iter().all(|ending| {
            let closing = &ending.closing;
            closing.status == LogStatus::Sent
                && closing.attempt.is_none_or(|attempt| attempt.number == 1)
                && !(self.since.get(&ending.emission.app)).is_some_and(is_fresh)
        })
    }

    /// Remembers the apps of the endings that were left.
    pub(super) fn learn(&mut self, batch: &Batch<'_>, left: &HashSet<LogId>) {
        if left.is_empty() {
            return;
        }
        self.since.retain(|_, since| is_fresh(since));
        let apps = (batch.endings.iter())
            .filter(|ending| left.contains(&ending.closing.id))
            .map(|ending| (ending.emission.app, Instant::now()));
        self.since.extend(apps);
    }
}

fn is_fresh(since: &Instant) -> bool {
    since.elapsed() < REMEMBERED
}
