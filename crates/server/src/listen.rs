//! Listens on an address from the settings.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use tokio::net::{TcpListener, TcpSocket};

/// An address can't be bound. The text is one line for the operator.
#[derive(Debug, thiserror::Error)]
#[error(
    "{setting}: can't listen on {address}: {source}; give {setting} another address (in the environment {})",
    environment_name(setting)
)]
pub struct ListenError {
    /// The setting.
    pub setting: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// The cause.
    pub source: std::io::Error,
}

/// A setting's name in the environment.
fn environment_name(setting: &str) -> String {
    format!("MAILGATE__{}", setting.replace('.', "__").to_uppercase())
}

/// The backlog of connections to be accepted: Linux's maximum (`net.core.somaxconn`), so that a burst of clients waits
/// instead of being dropped and retrying after a second.
const BACKLOG: u32 = 4_096;

/// Listens on the address of a setting.
pub async fn bind(setting: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    listen(address).map_err(|source| ListenError {
        setting,
        address,
        source,
    })
}

/// `[::]` includes IPv4, and is IPv4 only if the kernel has no IPv6.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && is_without_ipv6(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        opened => opened,
    }
}

/// Whether `socket` or `bind` failed because IPv6 is disabled (ip(7), ipv6(7)).
fn is_without_ipv6(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL)
    )
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // Regardless of net.ipv6.bindv6only.
        set_ipv6_v6only(&socket, false)?;
    }
    // A restart doesn't wait for the previous process's connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn all_addresses_are_both_families() {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let port = bind("http.listen", any)
            .await
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let listener = bind("http.listen", (Ipv6Addr::UNSPECIFIED, port).into())
            .await
            .unwrap();
        let client = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let (accepted, client) = tokio::join!(listener.accept(), client);
        let (peer, client) = (accepted.unwrap().1, client.unwrap());
        assert_eq!(
            (peer.ip().to_canonical(), peer.port()),
            (
                Ipv4Addr::LOCALHOST.into(),
                client.local_addr().unwrap().port()
            )
        );
    }

    #[test]
    fn only_a_lack_of_ipv6_leaves_ipv4_alone() {
        for (error, is_so) in [
            (Errno::AFNOSUPPORT, true),
            (Errno::ADDRNOTAVAIL, true),
            (Errno::ADDRINUSE, false),
            (Errno::ACCESS, false),
            (Errno::MFILE, false),
        ] {
            assert_eq!(is_without_ipv6(&error.into()), is_so, "{error}");
        }
    }
}
