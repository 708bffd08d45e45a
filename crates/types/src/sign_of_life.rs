//! The last sign of life that a gateway recorded in the database. It decides whether the database's clock is trusted,
//! and so whether data is deleted by age.

use chrono::{DateTime, TimeDelta, Utc};

/// A clock that has advanced by more than this since the last sign of life is not trusted: it may have been set wrong.
const GAP: TimeDelta = TimeDelta::days(7);

/// How long it must run without a break before it is trusted again.
const HELD: TimeDelta = TimeDelta::days(1);

/// The length of a break. There is a sign of life each minute.
const BREAK: TimeDelta = TimeDelta::hours(1);

/// The last sign of life of any gateway, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignOfLife {
    /// When it was.
    pub observed_at: DateTime<Utc>,
    /// The last trusted time.
    pub trusted_at: DateTime<Utc>,
    /// When deletions were suspended; `None`: they aren't.
    pub held_since: Option<DateTime<Utc>>,
}

impl SignOfLife {
    /// A sign of life at a time that is trusted unconditionally.
    #[must_use]
    pub fn trusted(now: DateTime<Utc>) -> Self {
        Self {
            observed_at: now,
            trusted_at: now,
            held_since: None,
        }
    }

    /// The next sign of life.
    #[must_use]
    pub fn next(self, now: DateTime<Utc>) -> Self {
        let gap = now - self.observed_at;
        let held_since = match self.held_since {
            _ if gap > GAP => Some(now),
            // No gateway has run, or the clock was set again.
            Some(_) if gap.abs() > BREAK => Some(now),
            held_since => held_since,
        };
        let is_back = now < self.trusted_at + GAP;
        match held_since.filter(|since| now - *since < HELD && !is_back) {
            Some(since) => Self {
                observed_at: now,
                held_since: Some(since),
                ..self
            },
            None => Self::trusted(now),
        }
    }

    /// When deletions resume, if nothing else happens.
    #[must_use]
    pub fn held_until(self) -> Option<DateTime<Utc>> {
        self.held_since.map(|since| since + HELD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

    /// One sign of life per minute, for this long.
    fn live(mut sign: SignOfLife, length: TimeDelta) -> SignOfLife {
        let end = sign.observed_at + length;
        while sign.observed_at < end {
            sign = sign.next(sign.observed_at + TimeDelta::minutes(1));
        }
        sign
    }

    fn after(length: TimeDelta) -> SignOfLife {
        SignOfLife::trusted(START).next(START + length)
    }

    #[test]
    fn a_clock_that_moves_on_or_back_is_trusted() {
        for length in [
            TimeDelta::zero(),
            TimeDelta::minutes(1),
            TimeDelta::hours(26),
            TimeDelta::days(7),
            TimeDelta::hours(-26),
            TimeDelta::days(-100),
        ] {
            assert_eq!(after(length), SignOfLife::trusted(START + length));
        }
    }

    #[test]
    fn after_a_gap_of_more_than_a_week_it_is_held_until_it_has_gone_on_for_a_day() {
        let length = TimeDelta::days(7) + TimeDelta::seconds(1);
        let began = START + length;
        let sign = after(length);
        assert_eq!(sign.trusted_at, START);
        assert_eq!(sign.held_since, Some(began));
        assert_eq!(sign.held_until(), Some(began + TimeDelta::days(1)));
        let sign = live(sign, TimeDelta::days(1) - TimeDelta::minutes(1));
        assert_eq!((sign.trusted_at, sign.held_since), (START, Some(began)));
        let sign = live(sign, TimeDelta::minutes(1));
        assert_eq!(sign, SignOfLife::trusted(began + TimeDelta::days(1)));
        assert_eq!(sign.held_until(), None);
    }

    #[test]
    fn it_ends_when_the_clock_is_set_right() {
        let sign = live(after(TimeDelta::days(100)), TimeDelta::hours(2));
        for now in [
            START,
            START + TimeDelta::days(6),
            START - TimeDelta::days(3),
        ] {
            assert_eq!(sign.next(now), SignOfLife::trusted(now));
        }
    }

    #[test]
    fn a_break_or_another_jump_begins_it_anew() {
        let sign = live(after(TimeDelta::days(100)), TimeDelta::hours(23));
        for length in [
            TimeDelta::hours(2),
            TimeDelta::days(2),
            TimeDelta::days(100),
            TimeDelta::hours(-2),
            TimeDelta::days(-20),
        ] {
            let now = sign.observed_at + length;
            let next = sign.next(now);
            assert_eq!((next.trusted_at, next.held_since), (START, Some(now)));
            assert!(live(next, TimeDelta::hours(23)).held_since.is_some());
            assert!(live(next, TimeDelta::hours(24)).held_since.is_none());
        }
        // A gateway's restart is not a break.
        let next = sign.next(sign.observed_at + TimeDelta::minutes(30));
        assert_eq!(next.held_since, sign.held_since);
        assert!(live(next, TimeDelta::minutes(30)).held_since.is_none());
    }
}
