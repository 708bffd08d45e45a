//! A name, and the certificate that is shown for it.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rustls::sign::CertifiedKey;

use mailgate_providers::tls::expiry;
use mailgate_server::issued::IssuedCertificate;

/// A name that the gateway has a certificate for, or is going to.
#[derive(Debug, Clone)]
pub struct ServedName(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    setting: &'static str,
    certificate: Arc<IssuedCertificate>,
    /// Which one was found last in the database, whether it can be shown or not.
    revision: Mutex<Option<i64>>,
    /// From when until when the shown one is valid; `None`: it is self-signed.
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

    /// The setting that it is from.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.0.setting
    }

    /// What handshakes are shown.
    #[must_use]
    pub fn certificate(&self) -> Arc<IssuedCertificate> {
        Arc::clone(&self.0.certificate)
    }

    /// From when until when the certificate is valid; `None` while there is none but a self-signed one.
    #[must_use]
    pub fn validity(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        *(self.0.validity)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this revision is another than the last one.
    pub(super) fn is_new(&self, revision: i64) -> bool {
        let mut last = (self.0.revision)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.replace(revision) != Some(revision)
    }

    /// Shows a certificate from now on.
    pub(super) fn show(&self, pair: CertifiedKey) {
        let validity = pair.cert.first().and_then(expiry::validity_of);
        self.0.certificate.replace(Arc::new(pair));
        *(self.0.validity)
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = validity;
    }
}
