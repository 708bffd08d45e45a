//! A time that has certainly passed, the only basis for deletion by age.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::clock::SharedClock;

/// How far the machine's clock may be ahead of the database's to be believed, for [`kept_from`].
const BELIEVED: TimeDelta = TimeDelta::days(2);

/// A time that has certainly passed ([`Clock::certainly_past`](super::clock::Clock::certainly_past)), or an earlier
/// one. Every deletion by age takes one, so that no other clock can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Past(DateTime<Utc>);

impl Past {
    /// The latest one.
    #[must_use]
    pub fn by(clock: &SharedClock) -> Self {
        Self(clock.certainly_past())
    }

    /// The time this long before it: older data has been kept long enough. Negative lengths count as zero.
    #[must_use]
    pub fn before(self, kept: TimeDelta) -> Self {
        let kept = kept.max(TimeDelta::zero());
        let before = self.0.checked_sub_signed(kept);
        Self(before.unwrap_or(DateTime::<Utc>::MIN_UTC))
    }

    /// The earlier of it and another time.
    #[must_use]
    pub fn or_earlier(self, other: DateTime<Utc>) -> Self {
        Self(self.0.min(other))
    }

    /// The start of its day.
    #[must_use]
    pub fn midnight(self) -> Self {
        Self(self.day().and_time(NaiveTime::MIN).and_utc())
    }

    /// Its day; earlier days have passed.
    #[must_use]
    pub fn day(self) -> NaiveDate {
        self.0.date_naive()
    }

    /// As a time.
    #[must_use]
    pub fn moment(self) -> DateTime<Utc> {
        self.0
    }

    /// Whether anything at all has certainly passed: not before both clocks are known, and trusted.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.0 > DateTime::UNIX_EPOCH
    }
}

/// The start of a retention period that begins now: the later of the database's clock and the machine's, so that the
/// period isn't shortened once the slower clock is corrected.
#[must_use]
pub fn kept_from(clock: &SharedClock) -> DateTime<Utc> {
    let ahead = clock.ahead().unwrap_or_default();
    clock.now() + ahead.clamp(TimeDelta::zero(), BELIEVED)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::MovedClock;
    use crate::database_clock::DatabaseClock;
    use crate::suspend_aware_instant::SuspendAwareInstant;

    #[test]
    fn it_only_ever_becomes_earlier() {
        let clock: SharedClock = Arc::new(MovedClock::default());
        let past = Past::by(&clock);
        let far = TimeDelta::days(100_000);
        assert!(past <= Past::by(&clock));
        for earlier in [
            past.before(TimeDelta::zero()),
            past.before(TimeDelta::days(1)),
            past.before(-far),
            past.before(TimeDelta::MAX),
            past.or_earlier(clock.now() + far),
            past.or_earlier(clock.now() - far),
            past.midnight(),
            past.before(TimeDelta::MAX).midnight(),
        ] {
            assert!(earlier <= past, "{earlier:?}");
        }
        assert_eq!(past.before(-far), past);
        assert_eq!(past.midnight().day(), past.day());
        assert!(past.is_known());
        let unknown: SharedClock = Arc::new(DatabaseClock::new(clock));
        assert!(!Past::by(&unknown).is_known());
    }

    #[test]
    fn what_is_kept_is_kept_from_the_later_clock_on() {
        for (ahead, believed) in [
            (TimeDelta::hours(26), TimeDelta::hours(26)),
            (TimeDelta::hours(-26), TimeDelta::zero()),
            (TimeDelta::days(100), BELIEVED),
        ] {
            let machine = Arc::new(MovedClock::default());
            machine.advance(ahead);
            let clock: SharedClock = Arc::new(DatabaseClock::new(machine));
            let database = Utc::now();
            clock.synchronize(database, SuspendAwareInstant::now());
            let from = kept_from(&clock) - database - believed;
            assert!(from.abs() < TimeDelta::minutes(5), "{ahead} {from}");
        }
    }
}
