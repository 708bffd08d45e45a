//! The database's clock, carried forward between readings by the time since boot: all processes on one database share
//! its time, whatever their machines' clocks say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::clock::{Clock, SharedClock, SystemClock, TOLERANCE};
use super::suspend_aware_instant::SuspendAwareInstant;

/// The database's clock and the machine's.
#[derive(Debug)]
pub struct DatabaseClock {
    machine: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    anchor: Option<Anchor>,
    trusted: Option<Anchor>,
    steps: u64,
}

/// A time, and the instant at which it was read.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    time: DateTime<Utc>,
    at: SuspendAwareInstant,
}

impl Anchor {
    fn at(self, instant: SuspendAwareInstant) -> DateTime<Utc> {
        self.time + delta(instant.since(self.at))
    }
}

impl DatabaseClock {
    /// Creates a clock that shows the machine's time until it is synchronized.
    #[must_use]
    pub fn new(machine: SharedClock) -> Self {
        Self {
            machine,
            state: Mutex::default(),
        }
    }

    /// The same, with this clock as the machine's.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self::new(Arc::new(SystemClock)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reading was taken between the request and the answer. If the current time already lies within these bounds,
    /// it is kept: slow readings change nothing, and the clock doesn't jitter.
    fn synchronize_between(
        &self,
        reading: DateTime<Utc>,
        asked: SuspendAwareInstant,
        answered: SuspendAwareInstant,
    ) {
        let half = answered.since(asked) / 2;
        let fresh = Anchor {
            time: reading + delta(half),
            at: answered,
        };
        let mut state = self.state();
        let off = (state.anchor).map(|anchor| (anchor.at(answered) - fresh.time).abs());
        if off.is_none_or(|off| off > delta(half)) {
            state.anchor = Some(fresh);
        }
        if off.is_some_and(|off| off > delta(half) + TOLERANCE) {
            state.steps += 1;
        }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        let anchor = self.state().anchor;
        anchor.map_or_else(
            || self.machine.now(),
            |anchor| anchor.at(SuspendAwareInstant::now()),
        )
    }

    fn agreed(&self) -> DateTime<Utc> {
        self.now().min(self.machine.now())
    }

    fn certainly_past(&self) -> DateTime<Utc> {
        let state = *self.state();
        match (state.anchor, state.trusted) {
            (Some(_), Some(trusted)) => self.agreed().min(trusted.at(SuspendAwareInstant::now())),
            _ => DateTime::UNIX_EPOCH,
        }
    }

    fn ahead(&self) -> Option<TimeDelta> {
        self.state().anchor?;
        Some(self.machine.now() - self.now())
    }

    fn synchronize(&self, reading: DateTime<Utc>, asked: SuspendAwareInstant) {
        self.synchronize_between(reading, asked, SuspendAwareInstant::now());
    }

    fn steps(&self) -> u64 {
        self.state().steps
    }

    fn trust(&self, time: DateTime<Utc>) {
        let at = SuspendAwareInstant::now();
        self.state().trusted = Some(Anchor { time, at });
    }
}

/// A duration as a `TimeDelta`, saturating.
fn delta(duration: std::time::Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::MovedClock;

    fn near(one: DateTime<Utc>, other: DateTime<Utc>) -> bool {
        (one - other).abs() < TimeDelta::minutes(5)
    }

    #[test]
    fn it_shows_the_databases_time_and_names_how_far_the_machine_is_ahead() {
        for ahead in [
            TimeDelta::hours(3),
            TimeDelta::hours(26),
            TimeDelta::days(100),
            TimeDelta::hours(-26),
        ] {
            let machine = Arc::new(MovedClock::default());
            machine.advance(ahead);
            let clock = DatabaseClock::new(machine.clone());
            assert!(near(clock.now(), machine.now()));
            assert_eq!(clock.ahead(), None);

            let truth = Utc::now();
            clock.synchronize(truth, SuspendAwareInstant::now());
            assert!(near(clock.now(), truth));
            assert!(
                clock
                    .ahead()
                    .is_some_and(|is| (is - ahead).abs() < TimeDelta::minutes(5))
            );
            // The machine's clock is set: only the difference changes.
            machine.advance(-ahead);
            assert!(near(clock.now(), truth));
            assert!(
                clock
                    .ahead()
                    .is_some_and(|is| is.abs() < TimeDelta::minutes(5))
            );
        }
    }

    #[test]
    fn what_must_not_happen_early_is_due_by_the_later_clock() {
        let machine = Arc::new(MovedClock::default());
        let clock = DatabaseClock::new(machine.clone());
        let truth = Utc::now();
        clock.synchronize(truth + TimeDelta::hours(3), SuspendAwareInstant::now());
        assert!(near(clock.agreed(), truth));
        machine.advance(TimeDelta::days(1));
        assert!(near(clock.agreed(), truth + TimeDelta::hours(3)));
    }

    #[test]
    fn nothing_is_past_before_both_clocks_are_known_and_the_time_is_trusted() {
        let machine = Arc::new(MovedClock::default());
        let clock = DatabaseClock::new(machine.clone());
        let truth = Utc::now();
        assert_eq!(clock.certainly_past(), DateTime::UNIX_EPOCH);
        clock.trust(truth);
        assert_eq!(clock.certainly_past(), DateTime::UNIX_EPOCH);
        clock.synchronize(truth, SuspendAwareInstant::now());
        assert!(near(clock.certainly_past(), truth));
        // Both clocks are wrong in the same way: one machine, booted with a time years ahead.
        machine.advance(TimeDelta::days(700));
        clock.synchronize(truth + TimeDelta::days(700), SuspendAwareInstant::now());
        assert!(near(clock.certainly_past(), truth));
    }

    #[test]
    fn a_reading_changes_the_time_only_as_far_as_it_is_known() {
        let clock = DatabaseClock::new(Arc::new(MovedClock::default()));
        let (answered, truth) = (SuspendAwareInstant::now(), Utc::now());
        let asked = answered.before(Duration::from_secs(10));
        let time = || clock.state().anchor.map(|anchor| anchor.at(answered));
        clock.synchronize_between(truth, answered, answered);
        assert_eq!(time(), Some(truth));
        // Read at the start or at the end of ten seconds: both are possible.
        clock.synchronize_between(truth - TimeDelta::seconds(10), asked, answered);
        assert_eq!(time(), Some(truth));
        clock.synchronize_between(truth, asked, answered);
        assert_eq!(time(), Some(truth));
        // This one is impossible: the database's clock was set.
        assert_eq!(clock.steps(), 0);
        clock.synchronize_between(truth + TimeDelta::seconds(20), asked, answered);
        assert_eq!(time(), Some(truth + TimeDelta::seconds(25)));
        assert_eq!(clock.steps(), 1);
    }
}
