//! The range in which a poll looks for newly ready deliveries. A delivery is due when it becomes ready, but its
//! transaction may commit later. So each poll overlaps the previous one a little, one poll per second overlaps more,
//! and one in ten seconds still more; later commits are found by the full scan.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

use super::replay::BEHIND;
use mailgate_storage::webhook_queue::ready::Window;

/// How often to read back how far.
const DEPTHS: [(Duration, TimeDelta); 3] = [
    (Duration::ZERO, TimeDelta::milliseconds(500)),
    (Duration::from_millis(900), TimeDelta::seconds(10)),
    (Duration::from_secs(10), TimeDelta::seconds(60)),
];

/// Deliveries due further in the future than this count as replayed: clocks differ.
const AHEAD: TimeDelta = TimeDelta::seconds(60);

/// The longest range that is read; anything that polls have missed beyond it is left to the full scan.
const LONGEST: TimeDelta = TimeDelta::minutes(10);

/// From where on deliveries count as replayed.
pub(super) fn ahead(now: DateTime<Utc>) -> DateTime<Utc> {
    now + AHEAD
}

/// The range for a poll.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) window: Window,
    /// Something before it was never read.
    pub(super) has_gap: bool,
    depth: usize,
    at: (Instant, DateTime<Utc>),
}

/// How far the queue was read: at each depth, when the last poll of at least that depth began.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    read: [Option<(Instant, DateTime<Utc>)>; DEPTHS.len()],
}

impl Arrivals {
    /// The range for a poll that begins now.
    pub(super) fn look(&self, began: Instant, now: DateTime<Utc>) -> Look {
        let is_time = |depth: &usize| {
            self.read[*depth].is_none_or(|(last, _)| began - last >= DEPTHS[*depth].0)
        };
        let depth = (0..DEPTHS.len()).rev().find(is_time).unwrap_or(0);
        let back = DEPTHS[depth].1;
        // A clock may have been set back.
        let read = self.read[depth].map_or(now, |(_, read)| read.min(now));
        let has_gap = now - read > LONGEST;
        let since = if has_gap { now } else { read } - back;
        let ahead = ahead(now);
        Look {
            window: Window {
                since,
                behind_since: ahead.max(since + BEHIND),
                ahead,
                behind_before: ahead + BEHIND,
            },
            has_gap,
            depth,
            at: (began, now),
        }
    }

    /// Records that it was read.
    pub(super) fn record(&mut self, look: &Look) {
        self.read[..=look.depth].fill(Some(look.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(9) + TimeDelta::milliseconds(milliseconds)
    }

    fn poll(arrivals: &mut Arrivals, began: Instant, now: DateTime<Utc>) -> Look {
        let look = arrivals.look(began, now);
        arrivals.record(&look);
        look
    }

    #[test]
    fn each_depth_goes_on_from_where_it_was_read_at_that_depth() {
        let mut arrivals = Arrivals::default();
        let began = Instant::now();
        let later = |milliseconds| began + Duration::from_millis(milliseconds);
        let first = poll(&mut arrivals, began, at(0));
        assert_eq!(first.window.since, at(-60_000));
        assert_eq!(first.window.ahead, at(60_000));
        assert_eq!(first.window.behind_since, at(-60_000) + BEHIND);
        for (now, since) in [
            (10_i64, -500),
            (800, -490),
            (1_000, -10_000),
            (1_010, 500),
            (2_000, -9_000),
            (10_000, -60_000),
            (10_010, 9_500),
            (10_950, 0),
        ] {
            let look = poll(&mut arrivals, later(now.unsigned_abs()), at(now));
            assert_eq!(
                (look.window.since, look.has_gap),
                (at(since), false),
                "{now}"
            );
        }
    }

    #[test]
    fn a_clock_that_is_set_back_or_leaps_ahead_loses_nothing() {
        let mut arrivals = Arrivals::default();
        let began = Instant::now();
        poll(&mut arrivals, began, at(0));
        for (now, since, has_gap) in [
            (-30_000, -30_500, false),
            (90_000, -30_500, false),
            (90_000_000, 90_000_000 - 500, true),
            (90_000_010, 90_000_000 - 500, false),
        ] {
            let look = poll(&mut arrivals, began, at(now));
            assert_eq!(
                (look.window.since, look.has_gap),
                (at(since), has_gap),
                "{now}"
            );
        }
    }
}
