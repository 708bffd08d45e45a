//! Where a request comes from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::Extensions;

/// The client's address; a connection without one (a test's) counts as this machine.
#[must_use]
pub fn client_address(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |info| {
            info.0.ip().to_canonical()
        })
}
