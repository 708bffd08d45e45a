//! Which apps somebody listens to, as far as the journal has seen: a hint for the choice of its statement.
//! The database decides, so a hint that is out of date costs a second statement and nothing else.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::Batch;
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::log_status::LogStatus;

/// How long an app counts as listened to: it is asked about once in that time.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Apps whose messages were left by the statement for those that nobody listens to.
#[derive(Debug, Default)]
pub(super) struct Listened {
    since: HashMap<AppId, Instant>,
}

impl Listened {
    /// Whether all endings are, as far as is known, of messages that were sent at their first attempt and
    /// that nobody listens to.
    pub(super) fn is_only_sent(&self, batch: &Batch<'_>) -> bool {
        batch.endings.iter().all(|ending| {
            let closing = &ending.closing;
            closing.status == LogStatus::Sent
                && closing.attempt.is_none_or(|attempt| attempt.number == 1)
                && !(self.since.get(&ending.emission.app)).is_some_and(is_fresh)
        })
    }

    /// Remembers the apps of what was left.
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
