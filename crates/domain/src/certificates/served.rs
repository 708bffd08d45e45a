//! A name, and the certificate that is served for it.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rustls::sign::CertifiedKey;

use mailgate_providers::tls::expiry;
use mailgate_server::issued::IssuedCertificate;

/// A name that the gateway has, or orders, a certificate for.
#[derive(Debug, Clone)]
pub struct ServedName(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    setting: &'static str,
    certificate: Arc<IssuedCertificate>,
    /// The certificate last found in the database, usable or not.
    revision: Mutex<Option<i64>>,
    /// The validity period of the served one; `None`: it is self-signed.
    validity: Mutex<Option<(DateTime<Utc>, DateTime<Utc>)>>,
}

impl ServedName {
    pub(super) fn new(name: String, setting: &'static str, first: Arc<CertifiedKey>) -> Self {
        Self(Arc::new(Inner {
            name,
            setting,
            certificate: Arc::new(IssuedCertificate::new(first)),
            revision: Mutex::new(None),
            validity: Mutex::new(None),
        }))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The setting with this name.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.0.setting
    }

    /// The certificate for handshakes.
    #[must_use]
    pub fn certificate(&self) -> Arc<IssuedCertificate> {
        Arc::clone(&self.0.certificate)
    }

    /// The validity period of the certificate; `None` while it is self-signed.
    #[must_use]
    pub fn validity(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        *(self.0.validity)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this revision differs from the last one.
    pub(super) fn is_new(&self, revision: i64) -> bool {
        let mut last = (self.0.revision)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.replace(revision) != Some(revision)
    }

    /// Serves a certificate from now on.
    pub(super) fn show(&self, pair: CertifiedKey) {
        let validity = pair.cert.first().and_then(expiry::validity_of);
        self.0.certificate.replace(Arc::new(pair));
        *(self.0.validity)
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = validity;
    }
}
