//! An address of the settings, listened on.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use tokio::net::{TcpListener, TcpSocket};

/// An address can't be listened on. The text is one line for the operator.
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
    /// Why not.
    pub source: std::io::Error,
}

/// The name that a setting has in the environment.
fn environment_name(setting: &str) -> String {
    format!("MAILGATE__{}", setting.replace('.', "__").to_uppercase())
}

/// Connections that wait to be accepted: as many as Linux lets wait (`net.core.somaxconn`), so that a burst of clients
/// waits where it would otherwise be dropped, and each try again after a second.
const BACKLOG: u32 = 4_096;

/// Listens on the address of a setting.
pub async fn bind(setting: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    listen(address).map_err(|source| ListenError {
        setting,
        address,
        source,
    })
}

/// All addresses of the machine, where they are asked for: `[::]` is IPv4's as well, and only these where the kernel
/// has no IPv6.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && is_without_ipv6(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        opened => opened,
    }
}

/// As `socket` and `bind` fail where IPv6 is switched off (ip(7), ipv6(7)).
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
        // Whatever net.ipv6.bindv6only says.
        set_ipv6_v6only(&socket, false)?;
    }
    // A restart doesn't wait for the connections of the process before.
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
