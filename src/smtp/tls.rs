//! TLS of the SMTP listeners.

use std::sync::Arc;

use rustls::{CipherSuite, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::providers::tls::server::{ServerCertificate, ServerTlsError};

/// Accepts TLS 1.2 and 1.3 with the certificate as it is at the time of each handshake.
///
/// # Errors
///
/// When rustls refuses its own defaults.
pub fn acceptor(certificate: Arc<ServerCertificate>) -> Result<TlsAcceptor, ServerTlsError> {
    let mut provider = rustls::crypto::ring::default_provider();
    // SHA-256 is done by the processor, SHA-384 is not: the key schedule of each handshake is hashes.
    // The sort is stable, so the others keep the order of rustls.
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.ignore_client_order = true;
    // Submission clients come back one after the other, if they resume at all.
    config.send_tls13_tickets = 1;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
