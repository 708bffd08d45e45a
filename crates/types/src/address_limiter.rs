//! Rate limits by address, in bounded memory. An attacker with a whole network has more addresses than are tracked:
//! when many are tracked, their networks are counted too, and untracked addresses count by their network alone. So only
//! that network exceeds its limit. With too many networks, the latest ones are refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;
use governor::clock::{Clock, DefaultClock};

use super::limiter::{KeyedLimiter, SWEEP};
use super::neighbourhood::neighbourhood;

/// The limit of a network, as a multiple of an address's limit.
const ADDRESSES_OF_A_NETWORK: u32 = 16;

/// A rate limiter by address; an IPv6 address counts as its /64.
#[derive(Debug)]
pub struct AddressLimiter<C: Clock = DefaultClock> {
    addresses: KeyedLimiter<IpAddr, C>,
    networks: KeyedLimiter<IpAddr, C>,
    most: usize,
}

impl<C: Clock + Clone> AddressLimiter<C> {
    /// Allows each address `per_minute` events. Tracks at most `most` addresses, and as many networks.
    pub fn new(per_minute: NonZeroU32, most: usize, clock: C) -> Self {
        let of_networks =
            per_minute.saturating_mul(NonZeroU32::MIN.saturating_add(ADDRESSES_OF_A_NETWORK - 1));
        Self {
            addresses: KeyedLimiter::new(Quota::per_minute(per_minute), most, clock.clone()),
            networks: KeyedLimiter::new(Quota::per_minute(of_networks), most, clock),
            most,
        }
    }

    /// Counts one more event for an address.
    ///
    /// # Errors
    ///
    /// The time to wait until the next one is allowed.
    pub fn count(&self, address: IpAddr) -> Result<(), Duration> {
        let own = neighbourhood(address);
        if self.addresses.held() < self.most / 2 {
            return self.count_own(&own);
        }
        if self.addresses.holds(&own) {
            // First, so that an address over its own limit uses up none of its network's quota.
            self.count_own(&own)?;
            let counted = self.networks.count_if_room(&network(address));
            return counted.map_or(Ok(()), |counted| counted.map(drop));
        }
        self.networks
            .count_if_room(&network(address))
            .ok_or(SWEEP)??;
        self.count_own(&own)
    }

    fn count_own(&self, own: &IpAddr) -> Result<(), Duration> {
        let counted = self.addresses.count_if_room(own);
        counted.map_or(Ok(()), |counted| counted.map(drop))
    }
}

/// The network that an organisation commonly gets: the /24 of an IPv4 address, the /48 of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const MOST: usize = 1_000;

    fn limiter(clock: &FakeRelativeClock) -> AddressLimiter<FakeRelativeClock> {
        AddressLimiter::new(NonZeroU32::new(2).unwrap(), MOST, clock.clone())
    }

    /// A /64 of a /48.
    fn of_network(network: u16, number: u16) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, network, number, 0, 0, 0, 1).into()
    }

    fn v4(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_flood_from_a_few_networks_refuses_nobody_else() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        let flood = (0..3).flat_map(|network| (0..u16::MAX).map(move |it| of_network(network, it)));
        let passed = flood
            .filter(|address| limiter.count(*address).is_ok())
            .count();
        assert!(passed <= MOST / 2 + 3 * 2 * 16, "{passed}");
        assert!(limiter.addresses.held() <= MOST);
        for other in [v4("192.0.2.1"), v4("198.51.100.1"), of_network(9, 1)] {
            assert_eq!(limiter.count(other), Ok(()), "{other}");
            assert_eq!(limiter.count(other), Ok(()), "{other}");
            assert!(limiter.count(other).is_err(), "{other} has its own limit");
        }
        clock.advance(Duration::from_mins(1));
        assert_eq!(limiter.count(of_network(0, 1)), Ok(()), "it passes");
    }

    #[test]
    fn one_that_is_over_its_own_limit_uses_up_nothing_of_its_neighbours() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        for network in 0..500 {
            let _ = limiter.count(of_network(network, 1));
        }
        assert!(limiter.addresses.held() >= MOST / 2);
        let loud = (0..1_000).filter(|_| limiter.count(v4("192.0.2.1")).is_ok());
        assert_eq!(loud.count(), 2);
        assert_eq!(limiter.count(v4("192.0.2.9")), Ok(()));
    }

    #[test]
    fn a_flood_of_more_networks_than_have_room_lets_others_in_by_theirs() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        let known = v4("203.0.113.1");
        assert_eq!(limiter.count(known), Ok(()));
        for (network, number) in (0..100).flat_map(|it| (0..100).map(move |number| (it, number))) {
            let _ = limiter.count(of_network(network, number));
        }
        assert_eq!(limiter.addresses.held(), MOST);
        let passed = (0..100).filter(|_| limiter.count(v4("192.0.2.1")).is_ok());
        assert_eq!(passed.count(), 32, "as much as a network may");
        assert_eq!(limiter.count(known), Ok(()));
        assert!(limiter.count(known).is_err(), "which has its own limit");
    }

    #[test]
    fn as_many_networks_as_addresses_take_no_more_room_and_leave_who_was_there() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        let known = v4("203.0.113.1");
        assert_eq!(limiter.count(known), Ok(()));
        for network in 0..u16::MAX {
            let _ = limiter.count(of_network(network, 1));
        }
        assert!(limiter.addresses.held() <= MOST && limiter.networks.held() <= MOST);
        assert_eq!(limiter.count(v4("192.0.2.1")), Err(SWEEP));
        assert_eq!(limiter.count(known), Ok(()));
        assert!(limiter.count(known).is_err());
        clock.advance(SWEEP);
        assert_eq!(limiter.count(v4("192.0.2.1")), Ok(()));
    }

    #[test]
    fn while_few_are_known_neighbours_do_not_count_together() {
        let limiter = limiter(&FakeRelativeClock::default());
        for last in 0..=255 {
            let address = IpAddr::from([192, 0, 2, last]);
            assert!(limiter.count(address).is_ok() && limiter.count(address).is_ok());
            assert!(limiter.count(address).is_err());
        }
    }
}
