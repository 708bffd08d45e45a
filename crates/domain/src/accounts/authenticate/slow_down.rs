//! Delays answers to addresses that keep failing to authenticate, whose look-ups [`super::hold_back`] throttles.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::DefaultClock;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::accounts::Accounts;
use mailgate_types::address_limiter::AddressLimiter;

/// How long an answer is delayed once an address has used up its failures per minute.
const HOLD: Duration = Duration::from_secs(3);

/// The largest number of addresses tracked.
const REMEMBERED: usize = 100_000;

/// Failures by address.
#[derive(Debug)]
pub(in crate::accounts) struct Failures {
    limiter: AddressLimiter,
    /// Limits the warnings, so that strangers can't flood the log.
    warnings: DefaultDirectRateLimiter,
}

impl Failures {
    pub(in crate::accounts) fn new(per_minute: u32) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: AddressLimiter::new(per_minute, REMEMBERED, DefaultClock::default()),
            warnings: RateLimiter::direct(Quota::per_minute(NonZeroU32::MIN)),
        }
    }

    /// Counts a failure; returns whether there were too many.
    fn count(&self, address: IpAddr) -> bool {
        self.limiter.count(address).is_err()
    }
}

impl Accounts {
    /// Counts a failed authentication from `address` over `rest`, `smtp` or `portal`, and waits if there were too
    /// many recently.
    pub async fn slow_down(&self, address: IpAddr, door: &'static str) {
        metrics::counter!("mailgate_authentication_failures_total", "door" => door).increment(1);
        self.pace(address).await;
    }

    /// Counts an action that is limited like failed sign-ins, and waits if there were too many recently.
    pub async fn pace(&self, address: IpAddr) {
        if self.failures.count(address) {
            self.held_back.add(address);
            if self.failures.warnings.check().is_ok() {
                tracing::warn!("addresses that keep failing to authenticate are slowed down");
            }
            tokio::time::sleep(HOLD).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_minute() {
        let failures = Failures::new(2);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!(!failures.count(one));
        assert!(!failures.count(one));
        assert!(failures.count(one));
        assert!(!failures.count(two));
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        let failures = Failures::new(2);
        let from = |host: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, host, 0, 0, host]);
        assert!(!failures.count(from(1)));
        assert!(!failures.count(from(2)));
        assert!(failures.count(from(3)));
        assert!(!failures.count(IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1])));
    }
}
