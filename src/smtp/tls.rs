//! TLS of the SMTP listeners.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::providers::tls::server::{ServerCertificate, ServerTlsError};

/// Accepts TLS 1.2 and 1.3 with the certificate as it is at the time of each handshake.
///
/// # Errors
///
/// When rustls refuses its own defaults.
pub fn acceptor(certificate: Arc<ServerCertificate>) -> Result<TlsAcceptor, ServerTlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    Ok(TlsAcceptor::from(Arc::new(config)))
}
