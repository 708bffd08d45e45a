//! An address of the settings, listened on.

use std::net::SocketAddr;

use tokio::net::TcpListener;

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

/// Listens on the address of a setting.
pub async fn bind(setting: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| ListenError {
            setting,
            address,
            source,
        })
}
