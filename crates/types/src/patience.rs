//! Patience with slow clients: one that trickles its data can't keep its slot forever, however fast it began.

use std::time::Duration;

/// The remaining patience with a client during a message or a body. Waiting uses it up, received octets restore some,
/// and it never exceeds the initial amount: a client that keeps the minimum rate may go on, one that pauses may do so
/// occasionally.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    most: Duration,
    octets_per_second: u32,
    /// Octets of content received at the last call.
    octets: u64,
}

impl Patience {
    /// Creates the patience for a message that starts after this many octets of content.
    #[must_use]
    pub fn new(most: Duration, octets_per_second: u32, octets: u64) -> Self {
        Self {
            left: most,
            most,
            octets_per_second: octets_per_second.max(1),
            octets,
        }
    }

    /// How long to wait for the next octets, given the total octets of content so far.
    pub fn left(&mut self, octets: u64) -> Duration {
        let new = octets.saturating_sub(self.octets);
        self.octets = octets;
        let nanoseconds = new.saturating_mul(1_000_000_000) / u64::from(self.octets_per_second);
        let earned = Duration::from_nanos(nanoseconds);
        self.left = self.left.saturating_add(earned).min(self.most);
        self.left
    }

    /// Records that the client let this much time pass.
    pub fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: Duration = Duration::from_mins(5);

    #[test]
    fn pauses_use_patience_up_and_octets_bring_it_back() {
        let mut patience = Patience::new(MOST, 1_000, 50);
        assert_eq!(patience.left(50), MOST);
        patience.waited(Duration::from_secs(100));
        assert_eq!(patience.left(50), Duration::from_secs(200));
        assert_eq!(patience.left(10_050), Duration::from_secs(210));
        assert_eq!(patience.left(10_000_050), MOST, "never more than that");
        patience.waited(Duration::from_secs(1_000));
        assert_eq!(patience.left(10_000_050), Duration::ZERO);
        assert_eq!(patience.left(u64::MAX), MOST);
    }

    proptest! {
        #[test]
        fn a_message_ends_in_the_time_that_its_octets_give_it(
            steps in prop::collection::vec((0_u64..400_000, 0_u64..5_000), 1..200),
            rate in 1_u32..5_000,
        ) {
            let mut patience = Patience::new(MOST, rate, 0);
            let (mut time, mut octets) = (Duration::ZERO, 0);
            for (milliseconds, more) in steps {
                let pause = Duration::from_millis(milliseconds);
                if patience.left(octets) <= pause {
                    break;
                }
                patience.waited(pause);
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
            let mut patience = Patience::new(MOST, rate, 0);
            let mut octets = 0;
            for seconds in pauses {
                let pause = Duration::from_secs(seconds);
                prop_assert!(patience.left(octets) > pause);
                patience.waited(pause);
                octets += seconds * u64::from(rate);
            }
        }
    }
}
