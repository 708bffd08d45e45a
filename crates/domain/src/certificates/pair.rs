//! Keys, signing requests, and self-signed certificates for challenges and as placeholders.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

/// Why a key, request or certificate can't be created.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The key, the request or the certificate.
    #[error("{0}")]
    Make(#[from] rcgen::Error),
    /// rustls rejects it.
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
}

/// A new key (P-256) as PEM, and its certificate signing request.
pub(super) fn signing_request(name: &str) -> Result<(SecretString, Vec<u8>), PairError> {
    let key = KeyPair::generate()?;
    let request = parameters(name)?.serialize_request(&key)?;
    Ok((key.serialize_pem().into(), request.der().to_vec()))
}

/// The certificate served until the first one is issued: no client accepts it.
pub(super) fn self_signed(name: &str) -> Result<Arc<CertifiedKey>, PairError> {
    sign(&parameters(name)?)
}

/// The certificate that validates a name by TLS-ALPN-01 (RFC 8737 §3).
pub(super) fn proof(name: &str, key_authorization: &str) -> Result<Arc<CertifiedKey>, PairError> {
    let mut parameters = parameters(name)?;
    let digest = Sha256::digest(key_authorization.as_bytes());
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
    sign(&parameters)
}

fn parameters(name: &str) -> Result<CertificateParams, PairError> {
    let mut parameters = CertificateParams::new([name.to_owned()])?;
    parameters.distinguished_name = DistinguishedName::new();
    Ok(parameters)
}

fn sign(parameters: &CertificateParams) -> Result<Arc<CertifiedKey>, PairError> {
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = rustls::crypto::ring::sign::any_supported_type(&key)?;
    // Not parsed: its critical extension is known only to ACME servers.
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        key,
    )))
}
