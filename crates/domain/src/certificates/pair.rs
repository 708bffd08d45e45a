//! Keys and what is made with them: signing requests, and certificates of our own that prove a name or stand in.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

/// Why a key or what belongs to it can't be made.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The key, the request or the certificate.
    #[error("{0}")]
    Make(#[from] rcgen::Error),
    /// rustls doesn't take it.
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
}

/// A new key (P-256) as PEM, and the request that a certificate for it is ordered by.
pub(super) fn signing_request(name: &str) -> Result<(SecretString, Vec<u8>), PairError> {
    let key = KeyPair::generate()?;
    let request = parameters(name)?.serialize_request(&key)?;
    Ok((key.serialize_pem().into(), request.der().to_vec()))
}

/// What is shown until the first certificate is there: no client accepts it.
pub(super) fn self_signed(name: &str) -> Result<Arc<CertifiedKey>, PairError> {
    sign(&parameters(name)?)
}

/// Proves a name by TLS-ALPN-01 (RFC 8737 §3).
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
    // Not read back: what proves a name has an extension that nobody but its asker understands.
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        key,
    )))
}
