//! Load balancers and proxies trusted to report a client's address.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

/// Addresses and networks; if empty, no peer is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedPeers {
    networks: Arc<[IpNet]>,
}

/// The text is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as 10.0.0.0/8")]
pub struct NoNetwork(String);

impl TrustedPeers {
    /// Parses addresses and networks in CIDR notation.
    ///
    /// # Errors
    ///
    /// [`NoNetwork`] for the first text that is neither.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, NoNetwork> {
        let networks: Result<Vec<IpNet>, NoNetwork> = texts
            .into_iter()
            .map(|text| {
                let address = text
                    .parse()
                    .map(|address: IpAddr| address.to_canonical().into());
                let network = address.or_else(|_| text.parse());
                network.map_err(|_| NoNetwork(text.to_owned()))
            })
            .collect();
        Ok(Self {
            networks: networks?.into(),
        })
    }

    /// Whether this address is one of them.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The client's address, from the peer's `X-Forwarded-For` fields: each proxy appends the address that connected to
    /// it, so the last one that isn't a trusted proxy is the client. Everything before it may be forged by the client,
    /// in any bytes. An untrusted peer's header is ignored. If the last proxy gives no address, the result is the
    /// proxy's.
    #[must_use]
    pub fn client<'a>(
        &self,
        peer: IpAddr,
        forwarded_for: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> IpAddr {
        let mut client = peer.to_canonical();
        let fields = forwarded_for.rev();
        for hop in fields.flat_map(|field| field.rsplit(|byte| *byte == b',')) {
            if !self.contain(client) {
                break;
            }
            let Some(address) = reported_address(hop) else {
                break;
            };
            client = address;
        }
        client
    }
}

/// An address as proxies write it: bare, or with a port, in which case an IPv6 address has brackets.
#[must_use]
pub fn reported_address(hop: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(hop.trim_ascii()).ok()?;
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address: Option<IpAddr> = bare.unwrap_or(text).parse().ok();
    let address = address.or_else(|| Some(text.parse::<std::net::SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn addresses_and_networks_are_told_apart_from_others() {
        let peers = TrustedPeers::parse(["192.0.2.7", "10.0.0.0/8", "2001:db8::/32"]).unwrap();
        for (address, trusted) in [
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("10.200.1.1", true),
            ("::ffff:10.1.1.1", true),
            ("11.0.0.1", false),
            ("2001:db8:5::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(
                peers.contain(address.parse().unwrap()),
                trusted,
                "{address}"
            );
        }
        assert!(!TrustedPeers::default().contain([127, 0, 0, 1].into()));
        for wrong in ["", "10.0.0.0/33", "localhost", "10.0.0"] {
            assert_eq!(
                TrustedPeers::parse([wrong]),
                Err(NoNetwork(wrong.to_owned()))
            );
        }
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        let peers = TrustedPeers::parse(["10.0.0.0/8"]).unwrap();
        for (peer, header, client) in [
            ("10.0.0.1", "198.51.100.4", "198.51.100.4"),
            // The client's own entries are further left.
            (
                "10.0.0.1",
                "1.2.3.4, 198.51.100.4, 10.0.0.2",
                "198.51.100.4",
            ),
            ("10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
            ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("10.0.0.1", "198.51.100.4:80", "198.51.100.4"),
            ("10.0.0.1", "198.51.100.4, unknown", "10.0.0.1"),
            ("10.0.0.1", "198.51.100.4,", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
            ("192.0.2.1", "198.51.100.4", "192.0.2.1"),
        ] {
            let fields = [header.as_bytes()].into_iter();
            let found = peers.client(peer.parse().unwrap(), fields);
            assert_eq!(found, client.parse::<IpAddr>().unwrap(), "{header}");
        }
    }

    #[test]
    fn what_the_client_wrote_hides_nothing_that_a_proxy_appended() {
        let peers = TrustedPeers::parse(["10.0.0.0/8"]).unwrap();
        let client = IpAddr::from([198, 51, 100, 4]);
        for fields in [
            &[&b"\xff, 198.51.100.4"[..]][..],
            &[b"\xff", b"198.51.100.4"],
            &[b"1.2.3.4, \xc3", b"\xe4,198.51.100.4, 10.0.0.2"],
            &[b",,,198.51.100.4 "],
        ] {
            let found = peers.client([10, 0, 0, 1].into(), fields.iter().copied());
            assert_eq!(found, client, "{fields:?}");
        }
        let last = [&b"198.51.100.4"[..], b"\xff"].into_iter();
        assert_eq!(
            peers.client([10, 0, 0, 1].into(), last),
            IpAddr::from([10, 0, 0, 1])
        );
    }
}
