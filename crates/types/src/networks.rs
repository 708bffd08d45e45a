//! The client addresses that a key may be used from.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};

/// The largest number of networks in a list.
pub const MOST_NETWORKS: usize = 50;

/// Bits in front of the IPv4 address in one that is mapped to IPv6 (RFC 4291 §2.5.5.2).
const MAPPED: u8 = 96;

/// The text is neither an address nor a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an IP address or a network in CIDR notation, such as 192.0.2.0/24 or 2001:db8::/32"
)]
pub struct InvalidNetwork;

/// A network, or a single address. Its host bits are zero, and IPv4-mapped addresses are IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let net: IpNet = match text.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => text.parse().map_err(|_| InvalidNetwork)?,
        };
        Ok(Self(canonical(net).trunc()))
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, formatter)
    }
}

fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let length = v6.prefix_len().checked_sub(MAPPED);
    let mapped = length.zip(v6.addr().to_ipv4_mapped());
    let v4 = mapped.and_then(|(length, address)| Ipv4Net::new(address, length).ok());
    v4.map_or(net, IpNet::V4)
}

/// Networks; an empty list allows every address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Arc<[Network]>);

impl Networks {
    /// Parses networks from the database.
    ///
    /// # Errors
    ///
    /// [`InvalidNetwork`] if any is invalid: skipping it could make the list empty, which allows everything.
    pub fn parse(texts: &[String]) -> Result<Self, InvalidNetwork> {
        texts.iter().map(|text| text.parse()).collect()
    }

    /// Whether a client at this address is allowed; `None` is an unknown address.
    #[must_use]
    pub fn allow(&self, address: Option<IpAddr>) -> bool {
        let contain = |address: IpAddr| {
            let address = address.to_canonical();
            self.0.iter().any(|network| network.0.contains(&address))
        };
        self.0.is_empty() || address.is_some_and(contain)
    }

    /// Their text form for display and storage.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(Network::to_string).collect()
    }
}

impl FromIterator<Network> for Networks {
    /// Removes duplicates, and keeps the order.
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        let mut kept: Vec<Network> = Vec::new();
        for network in networks {
            if !kept.contains(&network) {
                kept.push(network);
            }
        }
        Self(kept.into())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::net::Ipv6Addr;

    use super::*;
    use proptest::prelude::*;

    fn networks(texts: &[&str]) -> Result<Networks, InvalidNetwork> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Networks::parse(&texts)
    }

    #[test]
    fn addresses_are_in_networks_or_not() {
        for (network, inside, outside) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.0/24", "::ffff:192.0.2.200", "192.0.3.1"),
            ("192.0.2.77/24", "192.0.2.1", "::ffff:192.0.3.1"),
            ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("::ffff:192.0.2.0/120", "192.0.2.99", "192.0.3.0"),
            ("2001:db8::/32", "2001:db8:5::1", "2001:db9::1"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
            // All of IPv6 doesn't include IPv4, and vice versa.
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("0.0.0.0/0", "::ffff:192.0.2.1", "2001:db8::1"),
        ] {
            let list = networks(&[network]).unwrap();
            assert!(list.allow(inside.parse().ok()), "{inside} in {network}");
            assert!(!list.allow(outside.parse().ok()), "{outside} in {network}");
            assert_eq!(Networks::parse(&list.texts()), Ok(list));
        }
        assert!(Networks::default().allow(Some([192, 0, 2, 1].into())));
        assert!(Networks::default().allow(None));
        assert!(!networks(&["0.0.0.0/0", "::/0"]).unwrap().allow(None));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let long = "1".repeat(100_000);
        for text in [
            "",
            " ",
            "10.0.0",
            "10.0.0.0/33",
            "::/129",
            "localhost",
            "10.0.0.0/-1",
            "10.0.0.0/8 ",
            "fe80::1%eth0",
            &long,
        ] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text:.20}");
        }
        assert!(networks(&["10.0.0.0/8", "x"]).is_err());
    }

    #[test]
    fn each_is_kept_once() {
        let list = networks(&["10.0.0.1/8", "10.0.0.0/8", "::ffff:10.0.0.0/104"]).unwrap();
        assert_eq!(list.texts(), ["10.0.0.0/8"]);
    }

    proptest! {
        #[test]
        fn any_network_has_its_own_address(address in any::<u128>(), length in 0_u8..=128) {
            let address = Ipv6Addr::from(address);
            let network: Network = format!("{address}/{length}").parse().unwrap();
            let list: Networks = [network].into_iter().collect();
            // No IPv4-mapped address stays IPv6.
            prop_assert!(list.allow(Some(address.into())) || address.to_ipv4_mapped().is_some());
        }
    }
}
