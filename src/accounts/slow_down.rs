//! Slows down whoever keeps failing to authenticate.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::Accounts;
use crate::types::neighbourhood::neighbourhood;

/// How long an answer is held back once an address has used up its minute.
const HOLD: Duration = Duration::from_secs(3);

/// Addresses that are remembered before those without recent failures are forgotten.
const REMEMBERED: usize = 10_000;

/// Failures by address.
#[derive(Debug)]
pub(super) struct Failures {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
}

impl Failures {
    pub(super) fn new(per_minute: u32) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: RateLimiter::keyed(Quota::per_minute(per_minute)),
        }
    }

    /// Counts a failure; answers whether there were too many.
    fn count(&self, address: IpAddr) -> bool {
        if self.limiter.len() > REMEMBERED {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&neighbourhood(address)).is_err()
    }
}

impl Accounts {
    /// Counts a failed authentication from `address` at a door (`rest`, `smtp`), and waits when there were
    /// too many of late.
    pub async fn slow_down(&self, address: IpAddr, door: &'static str) {
        metrics::counter!("mailgate_authentication_failures_total", "door" => door).increment(1);
        if self.failures.count(address) {
            self.held_back.add(address);
            tracing::warn!("an address that keeps failing to authenticate is slowed down");
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
}
