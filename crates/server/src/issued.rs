//! A certificate that doesn't come from files, and can be replaced while in use.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Maximum number of certificates in a chain.
const CHAIN: usize = 10;

/// The PEM text has no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum UnusablePair {
    /// It isn't PEM of certificates and a key.
    #[error("it isn't PEM of certificates and a key")]
    Pem,
    /// No certificate, or too many.
    #[error("it holds {0} certificates")]
    Chain(usize),
    /// The key isn't the certificate's, or can't be used.
    #[error("the certificate and the key can't be used together: {0}")]
    Pair(rustls::Error),
}

/// The certificate for new handshakes; open sessions keep theirs.
#[derive(Debug)]
pub struct IssuedCertificate {
    shown: RwLock<Arc<CertifiedKey>>,
}

impl IssuedCertificate {
    /// Starts with this certificate.
    #[must_use]
    pub fn new(first: Arc<CertifiedKey>) -> Self {
        Self {
            shown: RwLock::new(first),
        }
    }

    /// Replaces the certificate for new handshakes.
    pub fn replace(&self, next: Arc<CertifiedKey>) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// The current certificate.
    #[must_use]
    pub fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for IssuedCertificate {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

/// Reads a private key and its certificate chain, leaf first, from one PEM text.
///
/// # Errors
///
/// [`UnusablePair`]
pub fn read_pair(pem: &[u8]) -> Result<CertifiedKey, UnusablePair> {
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| UnusablePair::Pem)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| UnusablePair::Pem)?;
    if chain.is_empty() || chain.len() > CHAIN {
        return Err(UnusablePair::Chain(chain.len()));
    }
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(UnusablePair::Pair)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::certificate_names::is_for;

    fn make(name: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_pair_belongs_together_and_is_for_its_name() {
        let (one, other) = (make("mx.example"), make("*.gateway.example"));
        let pair = read_pair(format!("{}{}", one.1, one.0).as_bytes()).unwrap();
        assert!(is_for(&pair.cert[0], "mx.example"));
        assert!(!is_for(&pair.cert[0], "other.example"));
        assert!(!is_for(&pair.cert[0], "not a name"));
        let wild = read_pair(format!("{}{}", other.0, other.1).as_bytes()).unwrap();
        assert!(is_for(&wild.cert[0], "mail.gateway.example"));
        for unusable in [
            String::new(),
            one.0.clone(),
            one.1.clone(),
            format!("{}{}", one.1, other.0),
            format!("{}{}", one.1, one.0.repeat(CHAIN + 1)),
            "garbage".repeat(1_000),
        ] {
            assert!(read_pair(unusable.as_bytes()).is_err(), "{unusable}");
        }
    }
}
