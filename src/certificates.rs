//! The listeners' certificates: from files, or from an ACME server.

mod challenges;
pub(crate) mod expiry;
pub mod reload;
pub(crate) mod renewal;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use challenges::challenge_router;
use mailgate_domain::certificates::{Certificates, CertificatesError};
use mailgate_server::http::{self, HttpLimits, Https};
use mailgate_server::shutdown::Shutdown;
use mailgate_server::stranger::strangers;
use mailgate_server::tls::{self, ServerCertificate, ServerTlsError};
use mailgate_settings::{AcmeSettings, CertificateSource, Settings};
use mailgate_storage::database::pool::PoolError;
use mailgate_types::clock::SharedClock;
use mailgate_types::seal::SealKeys;

/// Concurrent connections to the HTTP-01 listener, in total and per address.
const CHALLENGE_CONNECTIONS: usize = 256;
const CHALLENGE_CONNECTIONS_PER_ADDRESS: usize = 32;

/// The time limit for the header of a challenge request, and the bytes that such requests may hold.
const CHALLENGE_HEADER_READ: Duration = Duration::from_secs(5);
const CHALLENGE_BYTES: usize = 4 << 20;

/// Why certificates from an ACME server can't be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its settings.
    #[error(transparent)]
    Settings(#[from] CertificatesError),
    /// The database.
    #[error(transparent)]
    Database(#[from] PoolError),
}

/// The source of the certificates; files are read before anything else starts.
pub(crate) enum Source {
    Files(Arc<ServerCertificate>),
    Acme(AcmeSettings),
}

impl Source {
    pub(crate) fn load(settings: &Settings) -> Result<Self, ServerTlsError> {
        match &settings.certificates {
            CertificateSource::Files { certificate, key } => {
                let names = settings.certificate_names();
                let certificate = ServerCertificate::load_for(certificate, key, names)?;
                reload::warn(&certificate);
                Ok(Self::Files(Arc::new(certificate)))
            }
            CertificateSource::Acme(acme) => Ok(Self::Acme(acme.clone())),
        }
    }
}

/// The certificates being served.
pub(crate) enum Shown {
    Files(Arc<ServerCertificate>),
    Issued(Certificates),
}

impl Shown {
    /// Starts watching the files, or ordering and serving certificates.
    pub(crate) async fn start(
        source: Source,
        pool: &PgPool,
        seal_keys: &Arc<SealKeys>,
        clock: &SharedClock,
        shutdown: &Shutdown,
    ) -> Result<Self, StartError> {
        match source {
            Source::Acme(settings) => {
                let certificates = Certificates::new(
                    pool.clone(),
                    Arc::clone(seal_keys),
                    Arc::clone(clock),
                    settings,
                )?;
                certificates.prepare().await.map_err(PoolError::Connect)?;
                for name in certificates.missing() {
                    tracing::warn!(
                        name,
                        "there is no certificate yet: clients see a self-signed one, which they refuse, until the ACME server has issued one"
                    );
                }
                let stop = &shutdown.soft;
                shutdown.spawn_vital(
                    "the polling for new certificates",
                    renewal::show(certificates.clone(), stop.clone()),
                );
                shutdown.spawn_vital(
                    "the ordering of certificates",
                    renewal::order(certificates.clone(), stop.clone()),
                );
                Ok(Self::Issued(certificates))
            }
            Source::Files(certificate) => Ok(Self::follow(certificate, shutdown)),
        }
    }

    fn follow(certificate: Arc<ServerCertificate>, shutdown: &Shutdown) -> Self {
        shutdown.spawn_vital(
            "the certificate watcher",
            reload::run(
                Arc::clone(&certificate),
                reload::EVERY,
                shutdown.soft.clone(),
            ),
        );
        Self::Files(certificate)
    }

    /// The certificate from files.
    pub(crate) fn file(&self) -> Option<&Arc<ServerCertificate>> {
        match self {
            Self::Files(certificate) => Some(certificate),
            Self::Issued(_) => None,
        }
    }

    /// The certificates from an ACME server.
    pub(crate) fn issued(&self) -> Option<&Certificates> {
        match self {
            Self::Files(_) => None,
            Self::Issued(certificates) => Some(certificates),
        }
    }

    /// The TLS acceptor of the SMTP listeners.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServerTlsError> {
        match self {
            Self::Files(certificate) => tls::acceptor(Arc::clone(certificate)),
            Self::Issued(certificates) => tls::acceptor(certificates.of_smtp()),
        }
    }

    /// Serves HTTPS; returns the actual address.
    pub(crate) fn serve_http(
        &self,
        listener: Option<TcpListener>,
        routes: &Router,
        limits: &HttpLimits,
        shutdown: &Shutdown,
    ) -> Result<Option<SocketAddr>, ServerTlsError> {
        let Some(listener) = listener else {
            return Ok(None);
        };
        let https = match self {
            Self::Files(certificate) => Https::new(Arc::clone(certificate), None)?,
            Self::Issued(certificates) => {
                let challenges = certificates.challenges().certificates();
                Https::new(certificates.of_http(), Some(challenges))?
            }
        };
        let address = listener.local_addr().ok();
        http::serve_tls(listener, routes.clone(), limits.clone(), https, shutdown);
        Ok(address)
    }

    /// Serves HTTP-01 challenges.
    pub(crate) fn serve_challenges(
        &self,
        listener: Option<TcpListener>,
        limits: &HttpLimits,
        shutdown: &Shutdown,
    ) {
        let (Some(listener), Self::Issued(certificates)) = (listener, self) else {
            return;
        };
        let limits = HttpLimits {
            connections: CHALLENGE_CONNECTIONS,
            connections_per_address: CHALLENGE_CONNECTIONS_PER_ADDRESS,
            header_read: CHALLENGE_HEADER_READ,
            strangers: strangers(CHALLENGE_BYTES),
            one_request: true,
            ..limits.clone()
        };
        let router = challenge_router(certificates.challenges().clone());
        http::serve(listener, router, limits, shutdown);
    }
}
