//! Serves the certificates in the database, whichever gateway ordered them.

use metrics::gauge;
use secrecy::ExposeSecret as _;

use super::{Certificates, ServedName};
use mailgate_server::issued::{UnusablePair, read_pair};
use mailgate_storage::certificates::{self, StoredCertificate};
use mailgate_types::seal::UnsealError;

/// Why a stored certificate can't be served.
#[derive(Debug, thiserror::Error)]
enum Unshown {
    #[error(transparent)]
    Unseal(#[from] UnsealError),
    #[error(transparent)]
    Pair(#[from] UnusablePair),
}

impl Certificates {
    /// Serves certificates that are new in the database; open sessions keep theirs.
    pub async fn refresh(&self) -> Result<(), sqlx::Error> {
        let inner = &self.0;
        let directory_url = &inner.settings.directory_url;
        let mut connection = inner.pool.acquire().await?;
        let issued = certificates::issued(&mut connection, &inner.names, directory_url).await?;
        let failures = certificates::failures(&mut connection, &inner.names, directory_url).await?;
        drop(connection);
        for served in self.served() {
            let name = served.name();
            if let Some(stored) = issued.iter().find(|it| it.name == name)
                && served.is_new(stored.revision)
            {
                self.show(served, stored);
            }
            let failed = failures.iter().find(|(it, _)| it == name);
            gauge!("mailgate_acme_failed_attempts", "setting" => served.setting())
                .set(failed.map_or(0, |(_, failures)| *failures));
        }
        Ok(())
    }

    fn show(&self, served: &ServedName, stored: &StoredCertificate) {
        let name = served.name();
        match self.open(stored) {
            Ok(pair) => {
                served.show(pair);
                let expires = served.validity().map(|(_, ends)| ends);
                let expires = expires.map(tracing::field::display);
                tracing::info!(name, certificate_id = %stored.id, expires, "new connections see the certificate from the ACME server");
            }
            Err(error) => {
                tracing::error!(name, certificate_id = %stored.id, %error, "the stored certificate can't be used; the current one stays in use");
            }
        }
    }

    fn open(&self, stored: &StoredCertificate) -> Result<rustls::sign::CertifiedKey, Unshown> {
        let context = certificates::context(stored.id);
        let pem = self.0.seal_keys.unseal(&context, &stored.pair_sealed)?;
        Ok(read_pair(pem.expose_secret().as_bytes())?)
    }
}
