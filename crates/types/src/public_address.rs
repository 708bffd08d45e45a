//! Which addresses customers' URLs may lead to: those that are reachable from anywhere on the Internet (the IANA
//! special-purpose registries, RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public Internet, and doesn't embed another one.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private use (RFC 1918), loopback; multicast, reserved, broadcast.
        [0 | 10 | 127 | 224..=255, ..]
            // Shared by carriers (RFC 6598), link-local, private use.
            | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
            // Protocol assignments, documentation, 6to4 relays, benchmarks.
            | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..]
            | [198, 51, 100, _] | [203, 0, 113, _]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Only 2000::/3 is allocated. The rest contains loopback, unique-local, link-local, multicast, and the embedded
    // IPv4 addresses: mapped, compatible, translated (64:ff9b::/96, 64:ff9b:1::/48).
    (0x2000..=0x3fff).contains(&segments[0])
        && !matches!(
            segments,
            // Protocol assignments: Teredo, benchmarks, ORCHID and others (2001::/23); documentation.
            [0x2001, 0..=0x01ff | 0x0db8, ..]
            // 6to4: an embedded IPv4 address.
                | [0x2002, ..]
            // Documentation (RFC 9637).
                | [0x3fff, 0..=0x0fff, ..]
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_addresses() {
        for (text, public) in [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.1", true),
            ("198.17.255.255", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.255.255.255", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.9", false),
            ("224.0.0.1", false),
            ("239.255.255.255", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2a00:1450:4001:80b::200e", true),
            ("2001:4860:4860::8888", true),
            ("2001:200::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("::ffff:0:8.8.8.8", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::808:808", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:20::1", false),
            ("2001:1ff::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::1", false),
            ("3fff::1", false),
            ("3fff:fff::1", false),
            ("3fff:1000::1", true),
            ("4000::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let address: Result<IpAddr, _> = text.parse();
            assert_eq!(address.map(is_public), Ok(public), "{text}");
        }
    }

    proptest! {
        /// Whatever the standard library considers special is not public.
        #[test]
        fn nothing_special_is_public(bits in any::<u32>()) {
            let address = Ipv4Addr::from(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_broadcast() || address.is_documentation() || address.is_multicast()
                || address.is_unspecified();
            prop_assert!(!(special && is_public(address.into())), "{}", address);
            prop_assert!(!is_public(address.to_ipv6_mapped().into()));
            prop_assert!(!is_public(address.to_ipv6_compatible().into()));
        }

        #[test]
        fn nothing_special_of_six_is_public(bits in any::<u128>()) {
            let address = Ipv6Addr::from(bits);
            let special = address.is_loopback() || address.is_unspecified() || address.is_multicast()
                || address.is_unique_local() || address.is_unicast_link_local()
                || address.to_ipv4().is_some();
            prop_assert!(!(special && is_public(address.into())), "{}", address);
        }

        /// Each of the forbidden networks, at any address within it.
        #[test]
        fn whole_nets(
            net in prop::sample::select(vec![
                ("10.0.0.0", 8), ("100.64.0.0", 10), ("127.0.0.0", 8), ("169.254.0.0", 16),
                ("172.16.0.0", 12), ("192.168.0.0", 16), ("198.18.0.0", 15), ("224.0.0.0", 4),
                ("240.0.0.0", 4), ("0.0.0.0", 8),
            ]),
            bits in any::<u32>(),
        ) {
            let (base, length) = net;
            let base: Ipv4Addr = base.parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
            let address = Ipv4Addr::from(u32::from(base) | (bits & (u32::MAX >> length)));
            prop_assert!(!is_public(address.into()), "{}", address);
        }

        /// An IPv4 address that NAT64 or 6to4 would lead to.
        #[test]
        fn nothing_in_disguise_is_public(bits in any::<u32>(), host in any::<u64>()) {
            let nat64 = (0x0064_ff9b_u128 << 96) | u128::from(bits);
            let six_to_four = (0x2002_u128 << 112) | (u128::from(bits) << 80) | u128::from(host);
            prop_assert!(!is_public(Ipv6Addr::from(nat64).into()));
            prop_assert!(!is_public(Ipv6Addr::from(six_to_four).into()));
        }
    }
}
