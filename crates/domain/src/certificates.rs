//! Floor 2: certificates that the gateway orders by itself from an ACME server. They are in the database, sealed with
//! their keys, and all gateways serve them; one gateway at a time orders, and any of them answers the server's
//! challenges.

mod challenges;
mod order;
mod pair;
mod refresh;
pub(crate) mod renewal;
mod served;

use std::sync::Arc;

use chrono::TimeDelta;
use sqlx::PgPool;

pub use self::challenges::{ChallengeError, Challenges};
pub use self::order::Attempted;
pub use self::pair::PairError;
pub use self::served::ServedName;
use mailgate_providers::acme::{Acme, AcmeSetupError};
use mailgate_server::issued::IssuedCertificate;
use mailgate_settings::AcmeSettings;
use mailgate_storage::certificates;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::CertificateId;
use mailgate_types::past::Past;
use mailgate_types::seal::SealKeys;

/// Why certificates can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// The client of the ACME server.
    #[error(transparent)]
    Client(#[from] AcmeSetupError),
    /// The self-signed certificate served until the first one is issued.
    #[error("no self-signed certificate can be created: {0}")]
    Pair(#[from] PairError),
}

/// How long unused certificates are kept.
const UNUSED: TimeDelta = TimeDelta::days(30);

/// The certificates of one gateway.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    clock: SharedClock,
    seal_keys: Arc<SealKeys>,
    acme: Acme,
    settings: AcmeSettings,
    names: Vec<String>,
    /// The certificates of the SMTP listeners and of the HTTPS listener: the same if there is only one name.
    smtp: ServedName,
    http: ServedName,
    /// Both, each once.
    served: Vec<ServedName>,
    challenges: Challenges,
}

impl Certificates {
    /// Serves self-signed certificates until [`Self::refresh`] has found others.
    ///
    /// # Errors
    ///
    /// [`CertificatesError`]
    pub fn new(
        pool: PgPool,
        seal_keys: Arc<SealKeys>,
        clock: SharedClock,
        settings: AcmeSettings,
    ) -> Result<Self, CertificatesError> {
        let names = settings.names();
        let serve = |name: &str, setting| -> Result<ServedName, PairError> {
            let first = pair::self_signed(name)?;
            Ok(ServedName::new(name.to_owned(), setting, first))
        };
        let smtp = serve(&settings.smtp_name, "smtp.host")?;
        let (http, served) = match &settings.http_name {
            Some(name) if *name != settings.smtp_name => {
                let http = serve(name, "http.base_url")?;
                (http.clone(), vec![smtp.clone(), http])
            }
            _ => (smtp.clone(), vec![smtp.clone()]),
        };
        Ok(Self(Arc::new(Inner {
            acme: Acme::new(&settings, Arc::clone(&clock))?,
            challenges: Challenges::new(pool.clone(), names.clone()),
            pool,
            clock,
            seal_keys,
            settings,
            names,
            smtp,
            http,
            served,
        })))
    }

    /// Creates the rows of the names, so that certificates are ordered, and serves those already stored.
    pub async fn prepare(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.0.pool.acquire().await?;
        for name in &self.0.names {
            let id = CertificateId::at(self.0.clock.now());
            let directory_url = &self.0.settings.directory_url;
            certificates::ensure(&mut connection, id, name, directory_url).await?;
        }
        drop(connection);
        self.refresh().await
    }

    /// Removes certificates that have been unused for a month.
    pub async fn forget(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.0.pool.acquire().await?;
        let directory_url = &self.0.settings.directory_url;
        let past = Past::by(&self.0.clock).before(UNUSED);
        certificates::forget(&mut connection, &self.0.names, directory_url, past).await
    }

    /// All names with their certificates.
    #[must_use]
    pub fn served(&self) -> &[ServedName] {
        &self.0.served
    }

    /// The certificate of the SMTP listeners.
    #[must_use]
    pub fn of_smtp(&self) -> Arc<IssuedCertificate> {
        self.0.smtp.certificate()
    }

    /// The certificate of the HTTPS listener.
    #[must_use]
    pub fn of_http(&self) -> Arc<IssuedCertificate> {
        self.0.http.certificate()
    }

    /// The answers to ACME servers' challenges.
    #[must_use]
    pub fn challenges(&self) -> &Challenges {
        &self.0.challenges
    }

    /// The names that have no certificate yet.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let missing = self.0.served.iter().filter(|it| it.validity().is_none());
        missing.map(|it| it.name().to_owned()).collect()
    }
}
