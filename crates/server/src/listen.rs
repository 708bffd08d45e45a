//! An address of the settings, listened on.

use std::io;
use std::net::SocketAddr;

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

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restart doesn't wait for the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
