//! Slows down whoever keeps failing to authenticate.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::Accounts;

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

/// Whoever has one IPv6 address has a whole /64 of them.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Accounts {
    /// Counts a failed authentication from `address`, and waits when there were too many of late.
    pub async fn slow_down(&self, address: IpAddr) {
        if self.failures.count(address) {
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

    #[test]
    fn neighbours_are_one() {
        let of = |text: &str| text.parse().map(neighbourhood).ok();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
