//! Binds all addresses in the settings, or reports each one that is taken.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::DaemonError;
use super::systemd::Inherited;
use mailgate_portal::Submission;
use mailgate_server::{ListenError, bind};
use mailgate_settings::{AcmeChallenge, CertificateSource, Settings};

/// The bound sockets of all addresses in the settings.
pub(super) struct Listeners {
    pub(super) http: TcpListener,
    pub(super) https: Option<TcpListener>,
    /// Serves HTTP-01 challenges.
    pub(super) acme: Option<TcpListener>,
    pub(super) starttls: Option<TcpListener>,
    pub(super) implicit_tls: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
    /// The submission ports.
    pub(super) submission: Submission,
}

impl Listeners {
    pub(super) async fn bind(
        settings: &Settings,
        mut inherited: Inherited,
    ) -> Result<Self, DaemonError> {
        let smtp = &settings.smtp;
        let mut taken = Vec::new();
        let mut bind_some = async |setting, address| match (inherited.remove(setting), address) {
            (Some(listener), _) => Some(listener),
            (None, Some(address)) => {
                let bound = bind(setting, address).await;
                bound.map_err(|error| taken.push(error)).ok()
            }
            (None, None) => None,
        };
        let starttls = bind_some("smtp.starttls_listen", smtp.starttls_listen).await;
        let implicit_tls = bind_some("smtp.tls_listen", smtp.tls_listen).await;
        let metrics = bind_some("metrics.listen", settings.metrics_listen).await;
        let https = bind_some("http.tls_listen", settings.http_tls_listen).await;
        let acme = bind_some("acme.http_listen", http_01(settings)).await;
        let http = bind_some("http.listen", Some(settings.http_listen)).await;
        match http {
            Some(http) if taken.is_empty() => Ok(Self {
                submission: Submission {
                    host: smtp.host.clone(),
                    starttls_port: port(starttls.as_ref()),
                    tls_port: port(implicit_tls.as_ref()),
                },
                http,
                https,
                acme,
                starttls,
                implicit_tls,
                metrics,
            }),
            _ => Err(DaemonError::Taken(taken)),
        }
    }

    /// The actual address, if port 0 was requested.
    pub(super) fn http_address(&self, address: SocketAddr) -> Result<SocketAddr, DaemonError> {
        Ok(self.http.local_addr().map_err(|source| ListenError {
            setting: "http.listen",
            address,
            source,
        })?)
    }
}

/// The address for HTTP-01 challenges, if they are used.
fn http_01(settings: &Settings) -> Option<SocketAddr> {
    match &settings.certificates {
        CertificateSource::Acme(acme) if acme.challenge == AcmeChallenge::Http01 => {
            Some(acme.http_listen)
        }
        _ => None,
    }
}

/// The port that a socket is bound to.
fn port(listener: Option<&TcpListener>) -> Option<u16> {
    let address = listener?.local_addr().ok()?;
    Some(address.port())
}
