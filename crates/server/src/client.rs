//! The client of a request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, HeaderValue};

use mailgate_types::client_probe::Arrival;
use mailgate_types::trusted_peers::TrustedPeers;

/// The header field in which proxies report the client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// A request's connection, as set by the listener.
#[derive(Debug, Clone, Copy)]
pub struct Carrier {
    /// The peer, a client or a proxy.
    peer: IpAddr,
    /// Whether the peer is a trusted proxy.
    is_trusted: bool,
    /// Whether the proxy reports no client, or only trusted proxies.
    reports_nobody: bool,
}

/// The client's address; this machine's for a connection without one, as in tests.
#[must_use]
pub fn client_address(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |info| {
            info.0.ip().to_canonical()
        })
}

/// The client's address if it is known; `None` if a proxy's own address stands in for it, which must not grant access.
#[must_use]
pub fn known_address(extensions: &Extensions) -> Option<IpAddr> {
    let carrier = extensions.get::<Carrier>();
    carrier
        .is_none_or(|carrier| !carrier.reports_nobody)
        .then(|| client_address(extensions))
}

/// How a request reached this process.
#[must_use]
pub fn arrival(extensions: &Extensions, headers: &HeaderMap) -> Arrival {
    let client = client_address(extensions);
    let carrier = extensions.get::<Carrier>();
    let fields = headers.get_all(FORWARDED_FOR).iter();
    Arrival {
        peer: carrier.map_or(client, |carrier| carrier.peer),
        is_trusted: carrier.is_some_and(|carrier| carrier.is_trusted),
        client,
        forwarded_for: fields
            .map(|field| String::from_utf8_lossy(field.as_bytes()).into_owned())
            .collect(),
    }
}

/// The client of a request, and its peer: the same address, unless the peer is a proxy that reports another.
pub(crate) fn client(
    proxies: &TrustedPeers,
    peer: SocketAddr,
    headers: &HeaderMap,
) -> (SocketAddr, Carrier) {
    let fields = headers.get_all(FORWARDED_FOR).iter();
    let address = proxies.client(peer.ip(), fields.map(HeaderValue::as_bytes));
    let carrier = Carrier {
        peer: peer.ip().to_canonical(),
        is_trusted: proxies.contain(peer.ip()),
        reports_nobody: proxies.contain(address),
    };
    let client = if carrier.is_trusted {
        SocketAddr::new(address, peer.port())
    } else {
        peer
    };
    (client, carrier)
}
