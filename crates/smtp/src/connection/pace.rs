//! The pace of a message: a client that trickles its data can't keep its slot forever.

use std::time::Duration;

/// The remaining patience with a client during a message. Waiting uses it up, received octets restore some, and it
/// never exceeds the initial amount: a client that keeps the minimum rate may go on, one that pauses may do so
/// occasionally.
#[derive(Debug)]
pub(super) struct Pace {
    patience: Duration,
    most: Duration,
    octets_per_second: u32,
    /// Octets of content received at the last call.
    octets: u64,
}

impl Pace {
    /// For a message that starts after this many octets of content.
    pub(super) fn new(most: Duration, octets_per_second: u32, octets: u64) -> Self {
        Self {
            patience: most,
            most,
            octets_per_second: octets_per_second.max(1),
            octets,
        }
    }

    /// How long to wait for the next octets, given the total octets of content so far.
    pub(super) fn patience(&mut self, octets: u64) -> Duration {
        let new = octets.saturating_sub(self.octets);
        self.octets = octets;
        let nanoseconds = new.saturating_mul(1_000_000_000) / u64::from(self.octets_per_second);
        let earned = Duration::from_nanos(nanoseconds);
        self.patience = self.patience.saturating_add(earned).min(self.most);
        self.patience
    }

    /// The client let this much time pass.
    pub(super) fn waited(&mut self, time: Duration) {
        self.patience = self.patience.saturating_sub(time);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: Duration = Duration::from_mins(5);

    #[test]
    fn pauses_use_patience_up_and_octets_bring_it_back() {
        let mut pace = Pace::new(MOST, 1_000, 50);
        assert_eq!(pace.patience(50), MOST);
        pace.waited(Duration::from_secs(100));
        assert_eq!(pace.patience(50), Duration::from_secs(200));
        assert_eq!(pace.patience(10_050), Duration::from_secs(210));
        assert_eq!(pace.patience(10_000_050), MOST, "never more than that");
        pace.waited(Duration::from_secs(1_000));
        assert_eq!(pace.patience(10_000_050), Duration::ZERO);
        assert_eq!(pace.patience(u64::MAX), MOST);
    }

    proptest! {
        #[test]
        fn a_message_ends_in_the_time_that_its_octets_give_it(
            steps in prop::collection::vec((0_u64..400_000, 0_u64..5_000), 1..200),
            rate in 1_u32..5_000,
        ) {
            let mut pace = Pace::new(MOST, rate, 0);
            let (mut time, mut octets) = (Duration::ZERO, 0);
            for (milliseconds, more) in steps {
                let pause = Duration::from_millis(milliseconds);
                if pace.patience(octets) <= pause {
                    break;
                }
                pace.waited(pause);
                time += pause;
                octets += more;
            }
            let given = MOST + Duration::from_millis(octets * 1_000 / u64::from(rate) + 1);
            prop_assert!(time <= given);
        }

        #[test]
        fn whoever_keeps_the_rate_is_never_cut_off(
            pauses in prop::collection::vec(1_u64..299, 1..200),
            rate in 1_u32..5_000,
        ) {
            let mut pace = Pace::new(MOST, rate, 0);
            let mut octets = 0;
            for seconds in pauses {
                let pause = Duration::from_secs(seconds);
                prop_assert!(pace.patience(octets) > pause);
                pace.waited(pause);
                octets += seconds * u64::from(rate);
            }
        }
    }
}
