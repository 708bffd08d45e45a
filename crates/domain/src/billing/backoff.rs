//! When to retry after the provider could not be reached.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Billing, BillingError};
use mailgate_providers::payprov::PayprovError;

/// The first delay; it doubles with each attempt, up to the longest.
const FIRST: TimeDelta = TimeDelta::seconds(5);
const LONGEST: TimeDelta = TimeDelta::minutes(5);

/// How long one process may work on something before another takes over: a few calls to the provider with all their
/// attempts, each of which may take a minute and a half.
pub(super) const LEASE: TimeDelta = TimeDelta::minutes(20);

/// The delay after the attempt of this number, counted from 1.
fn wait(attempts: i32) -> TimeDelta {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(0);
    FIRST
        .checked_mul(2_i32.saturating_pow(doublings.min(10)))
        .unwrap_or(LONGEST)
        .min(LONGEST)
}

impl Billing {
    /// When to retry after `attempts` failures: later if the provider asks for it.
    pub(super) fn next_attempt_at(&self, attempts: i32, error: &BillingError) -> DateTime<Utc> {
        let asked = match error {
            BillingError::Provider(PayprovError::Unavailable { retry_after, .. }) => {
                retry_after.and_then(|wait| TimeDelta::from_std(wait).ok())
            }
            _ => None,
        };
        self.clock.now() + asked.unwrap_or_default().max(wait(attempts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_five_minutes() {
        let seconds = |attempts| wait(attempts).num_seconds();
        assert_eq!([0, 1, 2, 3, 6].map(seconds), [5, 5, 10, 20, 160]);
        assert_eq!([7, 30, i32::MAX].map(seconds), [300; 3]);
    }
}
