//! TLS. As a client we trust the system's root certificates, and a file of further ones; the certificates that we
//! present as a server are in [`server`].

pub mod expiry;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Why a TLS client can't be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientTlsError {
    /// The file of root certificates can't be used.
    #[error("{}: no certificates can be read from it: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// rustls rejects its own defaults.
    #[error("TLS can't be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A TLS client that trusts the system's roots and those in `ca_file` (PEM).
///
/// # Errors
///
/// If `ca_file` holds no certificate.
pub fn client(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, ClientTlsError> {
    let mut roots = RootCertStore::empty();
    // System certificates that can't be parsed are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let failed = |reason: String| ClientTlsError::File {
            path: path.to_owned(),
            reason,
        };
        let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| failed(error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("it holds none".to_owned()));
        }
        for certificate in certificates {
            roots
                .add(certificate)
                .map_err(|error| failed(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
