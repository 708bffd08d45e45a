//! Limits log lines that outsiders can trigger: one per minute, with the number of those suppressed.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// The time between two lines.
const INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// One kind of line.
#[derive(Debug, Default)]
pub struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<DateTime<Utc>>,
    kept_back: u64,
}

impl Throttle {
    /// The number of lines suppressed since the last one; `None` if this line must be suppressed, too.
    pub fn next(&self, now: DateTime<Utc>) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Setting the clock back doesn't suppress lines.
        let is_due = state.last.is_none_or(|last| (now - last).abs() >= INTERVAL);
        if is_due {
            state.last = Some(now);
            Some(std::mem::take(&mut state.kept_back))
        } else {
            state.kept_back += 1;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_says_how_many_there_were() {
        let throttle = Throttle::default();
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(throttle.next(now), Some(0));
        for _ in 0..1_000 {
            assert_eq!(throttle.next(now + TimeDelta::seconds(59)), None);
        }
        assert_eq!(throttle.next(now + TimeDelta::seconds(60)), Some(1_000));
        assert_eq!(throttle.next(now), Some(0), "the clock was set back");
    }
}
