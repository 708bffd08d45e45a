//! The time that the seeded rows cover, and when its messages were sent.

use chrono::{
    DateTime, Datelike, Days, DurationRound, NaiveDate, TimeDelta, Timelike, Utc, Weekday,
};

use super::random::Random;

/// Days with messages, unless the log is kept for less.
const DAYS: u32 = 14;

/// How long before the first message the apps were set up.
const SET_UP: TimeDelta = TimeDelta::hours(20);

/// How long ago the last messages were sent, in minutes; all others were sent before.
const LAST: [i64; 6] = [47, 31, 19, 11, 6, 2];

/// The time that is weighed as a whole.
const SLOT: TimeDelta = TimeDelta::minutes(30);

/// How far a message is moved from its even place, in milliseconds.
const SPREAD: i64 = 240_000;

/// The fortnight before a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    /// Its end.
    pub(super) now: DateTime<Utc>,
    days: u32,
}

impl Period {
    /// The fortnight before `now`, or as much of it as the log is kept for.
    pub(super) fn before(now: DateTime<Utc>, log_retention_days: u32) -> Self {
        let now = now
            .duration_trunc(TimeDelta::milliseconds(1))
            .unwrap_or(now);
        let days = DAYS.min(log_retention_days.saturating_sub(1)).max(1);
        Self { now, days }
    }

    /// When its first message was sent at the earliest.
    pub(super) fn start(&self) -> DateTime<Utc> {
        self.now - TimeDelta::days(self.days.into())
    }

    /// While its apps were set up, before the first message: so long after the beginning of that.
    pub(super) fn set_up(&self, minutes: i64) -> DateTime<Utc> {
        self.start() - SET_UP + TimeDelta::minutes(minutes)
    }

    /// So long ago, within a fortnight.
    pub(super) fn ago(&self, hours: i64, minutes: i64) -> DateTime<Utc> {
        let ago = TimeDelta::hours(hours) + TimeDelta::minutes(minutes);
        // A shorter period has the same, only denser.
        self.now - ago * i32::try_from(self.days).unwrap_or(1) / i32::try_from(DAYS).unwrap_or(1)
    }

    /// The day with most messages.
    fn peak(&self) -> NaiveDate {
        let days = self.now.date_naive();
        let before = (5..).map(|back| days - Days::new(back));
        before
            .take(7)
            .find(|day| !is_weekend(day.weekday()))
            .unwrap_or(days)
    }

    /// How busy the half hour from `at` on is.
    fn weight(&self, at: DateTime<Utc>) -> u64 {
        // UTC, as seen from Europe.
        let hour = match at.hour() {
            7 | 17 => 60,
            8 | 12 | 16 => 100,
            9..=11 | 13..=15 => 130,
            18..=20 => 25,
            _ => 4,
        };
        let day = if is_weekend(at.weekday()) {
            15
        } else if at.date_naive() == self.peak() {
            230
        } else {
            100
        };
        let ago = (self.now.date_naive() - at.date_naive()).num_days();
        let busy = Random::of(3, usize::try_from(ago).unwrap_or_default()).between(74, 118);
        hour * day * u64::try_from(busy).unwrap_or(100)
    }

    /// When `count` messages were sent, in order, each in a millisecond of its own.
    pub(super) fn moments(&self, count: usize) -> Vec<DateTime<Utc>> {
        let earlier = count.saturating_sub(LAST.len());
        let end = self.now - TimeDelta::minutes(LAST[0] + 3);
        let slots: Vec<(DateTime<Utc>, u64)> =
            std::iter::successors(Some(self.start()), |slot| Some(*slot + SLOT))
                .take_while(|slot| *slot + SLOT <= end)
                .map(|slot| (slot, self.weight(slot)))
                .collect();
        let total: u64 = slots.iter().map(|(_, weight)| weight).sum();
        let mut moments = Vec::with_capacity(count);
        let (mut slots, mut before) = (slots.into_iter().peekable(), 0);
        for number in 0..earlier {
            let of = |number: usize| u64::try_from(number).unwrap_or_default();
            let target = total * (2 * of(number) + 1) / (2 * of(earlier)).max(1);
            while let Some((_, weight)) = slots.next_if(|(_, weight)| before + weight <= target) {
                before += weight;
            }
            let Some((slot, weight)) = slots.peek() else {
                break;
            };
            let within = (target - before) * 1_800_000 / weight.max(&1);
            let within = i64::try_from(within).unwrap_or_default();
            let moved = Random::of(1, number).between(0, SPREAD);
            moments.push(*slot + TimeDelta::milliseconds((within - moved).max(0)));
        }
        moments.sort_unstable();
        let last = LAST.iter().enumerate().map(|(place, minutes)| {
            let seconds = Random::of(2, place).between(0, 50);
            self.now - TimeDelta::minutes(*minutes) - TimeDelta::seconds(seconds)
        });
        moments.extend(last);
        for place in 1..moments.len() {
            let earliest = moments[place - 1] + TimeDelta::milliseconds(1);
            moments[place] = moments[place].max(earliest);
        }
        moments
    }
}

fn is_weekend(day: Weekday) -> bool {
    matches!(day, Weekday::Sat | Weekday::Sun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_by_day_and_in_order_whatever_the_weekday() {
        for day in 0..7 {
            let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day) + TimeDelta::hours(3);
            let period = Period::before(now, 90);
            let moments = period.moments(2_000);
            assert_eq!(moments.len(), 2_000);
            assert!(moments.is_sorted_by(|one, next| one < next));
            assert!(moments[0] >= period.start() && moments[1_999] < now);
            assert!(moments[1_999] > now - TimeDelta::minutes(4));
            let of = |wanted: fn(Weekday) -> bool| {
                moments.iter().filter(|at| wanted(at.weekday())).count()
            };
            assert!(of(is_weekend) > 10 && of(is_weekend) < 200);
            let peak = moments.iter().filter(|at| at.date_naive() == period.peak());
            assert!(peak.count() > 250);
            // Mailboxes that have ended send none of the later messages.
            assert!(moments[1_200] < now - TimeDelta::days(3));
        }
        assert!(Period::before(Utc::now(), 1).moments(50).len() == 50);
    }
}
