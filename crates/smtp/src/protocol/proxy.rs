//! The header that a load balancer sends first to report the client's address: the binary form of the PROXY protocol
//! (`HAProxy`'s specification, section 2.2). Does no I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The signature, version and command, family, and the length of the rest.
const FIXED: usize = 16;

/// Longest header: a load balancer that includes a client's certificate needs some 2 KiB.
pub const LONGEST: usize = 4_096;

/// Why the bytes are not such a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxyHeader {
    /// Not a PROXY header, or version 1.
    #[error("it doesn't begin with the PROXY protocol's signature (version 2)")]
    Signature,
    /// An unknown version or command.
    #[error("its version or command is none of the PROXY protocol's")]
    Command,
    /// An unknown family.
    #[error("its address family is none of the PROXY protocol's")]
    Family,
    /// Too short for its addresses, or too long.
    #[error("its length is wrong, or beyond {LONGEST} bytes")]
    Length,
}

/// The progress of parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// At least this many more bytes belong to the header; what follows it does not.
    Wants(usize),
    /// The header is complete.
    Whole {
        /// The client's address; `None` if the load balancer connects on its own behalf, or names no address.
        client: Option<IpAddr>,
    },
}

/// Parses a header as far as it has arrived.
///
/// # Errors
///
/// [`InvalidProxyHeader`], as soon as it can't become valid.
pub fn parse(bytes: &[u8]) -> Result<Progress, InvalidProxyHeader> {
    let begun = bytes.len().min(SIGNATURE.len());
    if bytes[..begun] != SIGNATURE[..begun] {
        return Err(InvalidProxyHeader::Signature);
    }
    let is_proxied = match bytes.get(12) {
        Some(0x21) => true,
        None | Some(0x20) => false,
        Some(_) => return Err(InvalidProxyHeader::Command),
    };
    // For a family without an Internet address the connection's own address counts; the addresses of LOCAL are ignored.
    let addresses = match bytes.get(13) {
        Some(0x11) if is_proxied => 12,
        Some(0x21) if is_proxied => 36,
        None | Some(0x00 | 0x12 | 0x22 | 0x31 | 0x32) => 0,
        Some(_) if !is_proxied => 0,
        Some(_) => return Err(InvalidProxyHeader::Family),
    };
    let Some((fixed, rest)) = bytes.split_at_checked(FIXED) else {
        return Ok(Progress::Wants(FIXED - bytes.len()));
    };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length < addresses || FIXED + length > LONGEST {
        return Err(InvalidProxyHeader::Length);
    }
    if rest.len() < length {
        return Ok(Progress::Wants(length - rest.len()));
    }
    let client = match addresses {
        12 => rest.first_chunk::<4>().map(|it| Ipv4Addr::from(*it).into()),
        36 => rest
            .first_chunk::<16>()
            .map(|it| Ipv6Addr::from(*it).into()),
        _ => None,
    };
    Ok(Progress::Whole {
        client: client.map(|address: IpAddr| address.to_canonical()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn v4(last: u8) -> Vec<u8> {
        vec![192, 0, 2, last, 198, 51, 100, 1, 0x11, 0xd7, 0x02, 0x4b]
    }

    #[test]
    fn what_each_header_says() {
        let mut v6 = [0; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 9;
        let mut mapped = [0; 36];
        mapped[10..16].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 5]);
        let with_tlv = [v4(7), vec![0x02, 0, 3, b'a', b'b', b'c']].concat();
        let address = |text: &str| {
            Ok(Progress::Whole {
                client: text.parse().ok(),
            })
        };
        let own = Ok(Progress::Whole { client: None });
        for (bytes, said) in [
            (header(0x21, 0x11, &v4(7)), address("192.0.2.7")),
            (header(0x21, 0x11, &with_tlv), address("192.0.2.7")),
            (header(0x21, 0x21, &v6), address("2001:db8::9")),
            (header(0x21, 0x21, &mapped), address("192.0.2.5")),
            // A health check by the load balancer; its addresses don't count.
            (header(0x20, 0x00, &[]), own),
            (header(0x20, 0x11, &v4(7)), own),
            (header(0x20, 0xff, b"anything"), own),
            (header(0x21, 0x00, &[]), own),
            (header(0x21, 0x00, b"tlv"), own),
            // UDP and local sockets are not addresses of a TCP client.
            (header(0x21, 0x12, &v4(7)), own),
            (header(0x21, 0x31, &[0; 216]), own),
            (
                header(0x21, 0x11, &v4(7)[..11]),
                Err(InvalidProxyHeader::Length),
            ),
            (header(0x21, 0x21, &v4(7)), Err(InvalidProxyHeader::Length)),
            (
                header(0x21, 0x11, &[0; LONGEST]),
                Err(InvalidProxyHeader::Length),
            ),
            (header(0x22, 0x11, &v4(7)), Err(InvalidProxyHeader::Command)),
            (header(0x11, 0x11, &v4(7)), Err(InvalidProxyHeader::Command)),
            (header(0x21, 0x13, &v4(7)), Err(InvalidProxyHeader::Family)),
            (header(0x21, 0x41, &v4(7)), Err(InvalidProxyHeader::Family)),
            (header(0x21, 0x01, &v4(7)), Err(InvalidProxyHeader::Family)),
            (
                b"PROXY TCP4 192.0.2.7 ".to_vec(),
                Err(InvalidProxyHeader::Signature),
            ),
            (b"EHLO x\r\n".to_vec(), Err(InvalidProxyHeader::Signature)),
            (b"\r\n\r\nQ".to_vec(), Err(InvalidProxyHeader::Signature)),
        ] {
            assert_eq!(parse(&bytes), said, "{bytes:02x?}");
        }
    }

    /// Reads as a connection does: never a byte more than requested. Returns the rest of the input.
    fn read(mut input: &[u8], pieces: &[usize]) -> (Result<Progress, InvalidProxyHeader>, usize) {
        let (mut taken, mut pieces) = (Vec::new(), pieces.iter().cycle());
        loop {
            match parse(&taken) {
                Ok(Progress::Wants(wanted)) if !input.is_empty() => {
                    let piece = pieces.next().copied().unwrap_or(1);
                    let (next, rest) = input.split_at(piece.clamp(1, wanted).min(input.len()));
                    taken.extend_from_slice(next);
                    input = rest;
                }
                outcome => return (outcome, input.len()),
            }
        }
    }

    proptest! {
        #[test]
        fn any_split_says_the_same_and_takes_nothing_else(
            last in any::<u8>(),
            tlvs in prop::collection::vec(any::<u8>(), 0..300),
            behind in prop::collection::vec(any::<u8>(), 0..50),
            pieces in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let whole = header(0x21, 0x11, &[v4(last), tlvs].concat());
            let client = Some(IpAddr::from([192, 0, 2, last]));
            let (outcome, left) = read(&[&whole[..], &behind].concat(), &pieces);
            prop_assert_eq!(outcome, Ok(Progress::Whole { client }));
            prop_assert_eq!(left, behind.len());
            for length in 0..whole.len() {
                prop_assert!(matches!(parse(&whole[..length]), Ok(Progress::Wants(n)) if n > 0 && n <= whole.len() - length));
            }
        }

        #[test]
        fn any_bytes_end_the_same_way_at_any_split(
            start in 0..=16_usize,
            noise in prop::collection::vec(any::<u8>(), 0..80),
            pieces in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let good = header(0x21, 0x11, &v4(1));
            let bytes = [&good[..start], &noise].concat();
            let (one, other) = (read(&bytes, &pieces), read(&bytes, &[1]));
            // An invalid header is reported as soon as it is detected, so bytes may be left.
            prop_assert_eq!(one.0, other.0);
            prop_assert!(one.0.is_err() || one.1 == other.1);
        }
    }
}
