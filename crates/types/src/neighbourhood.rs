//! Maps an address to the unit that is counted for rate limits.

use std::net::{IpAddr, Ipv6Addr};

/// The address itself, or for IPv6 its /64: anyone who controls one of its addresses controls them all.
#[must_use]
pub fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one() {
        let of = |text: &str| text.parse().map(neighbourhood).ok();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
