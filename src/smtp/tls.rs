//! The certificate that the SMTP listeners show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// No certificates in the file.
    #[error("tls.certificate: {} can't be read as PEM certificates: {reason}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No key in the file.
    #[error("tls.key: {} can't be read as a PEM private key: {reason}", path.display())]
    Key {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The two don't belong together, or rustls can't use them.
    #[error("tls.certificate and tls.key can't be used together: {0}")]
    Pair(#[from] rustls::Error),
}

/// Accepts TLS 1.2 and 1.3 with a certificate chain and its key (PEM files).
///
/// # Errors
///
/// [`ServerTlsError`], which names the setting.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ServerTlsError> {
    let unreadable = |reason: String| ServerTlsError::Certificate {
        path: certificate.to_owned(),
        reason,
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable("it holds none".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| ServerTlsError::Key {
        path: key.to_owned(),
        reason: error.to_string(),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
