//! Certificates that the gateway orders by itself, mostly from Pebble.

mod bound;
mod fenced;
mod hostile_server;
mod issued;
mod operated;
mod proxied;
mod refused;
mod strangers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailgate_domain::certificates::Certificates;
use mailgate_providers::tls;
use mailgate_settings::{AcmeChallenge, AcmeSettings};
use mailgate_types::clock::MovedClock;
use mailgate_types::seal::SealKeys;
use rustls::pki_types::{CertificateDer, ServerName};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::peers::pebble::Pebble;
use crate::support::gateway::{Builder, Gateway, SEAL_KEY};
use crate::support::patience::{self, PATIENCE};
use crate::support::{database, failure};

/// The name of the SMTP listeners, and that of REST.
const MX: &str = "mx.mailgate.test";
const WEB: &str = "www.mailgate.test";

/// The certificate that a TLS listener shows a client which trusts `root`; `None` if the client refuses it.
async fn shown(address: SocketAddr, root: &Path, name: &str) -> Option<CertificateDer<'static>> {
    let connector = TlsConnector::from(tls::client(Some(root)).unwrap());
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let stream = timeout(PATIENCE, connector.connect(name, stream)).await;
    let stream = stream.expect("the handshake ends").ok()?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    Some(certificates[0].clone().into_owned())
}

/// Waits until a listener shows another certificate that a client accepts.
async fn shows_another(
    address: SocketAddr,
    root: &Path,
    than: Option<&CertificateDer<'static>>,
) -> CertificateDer<'static> {
    patience::found("certificate that is accepted", async || {
        let shown = shown(address, root, MX).await;
        shown.filter(|shown| Some(shown) != than)
    })
    .await
}

/// Settings of a gateway that orders from Pebble.
fn of_pebble(builder: Builder, pebble: &Pebble, http_listen: SocketAddr) -> Builder {
    builder
        .set("TLS__CERTIFICATE", "")
        .set("TLS__KEY", "")
        .set("SMTP__HOST", MX)
        .set("ACME__CHALLENGE", "http-01")
        .set("ACME__TERMS_AGREED", "true")
        .set("ACME__DIRECTORY_URL", &pebble.directory_url)
        .set("ACME__CA_FILE", pebble.ca_file.display())
        .set("ACME__HTTP_LISTEN", http_listen)
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The certificates of a gateway without its loops, with a database of their own or another one's.
struct Alone {
    pool: PgPool,
    certificates: Certificates,
}

impl Alone {
    async fn start(directory_url: &str, ca_file: PathBuf) -> Self {
        let url = database::create().await;
        Self::beside(&url, directory_url, ca_file).await
    }

    async fn beside(database_url: &str, directory_url: &str, ca_file: PathBuf) -> Self {
        Self::with_clock(database_url, directory_url, ca_file, Arc::default()).await
    }

    async fn with_clock(
        database_url: &str,
        directory_url: &str,
        ca_file: PathBuf,
        clock: Arc<MovedClock>,
    ) -> Self {
        failure::explain();
        drop(rustls::crypto::ring::default_provider().install_default());
        let pool = PgPoolOptions::new().max_connections(4);
        let pool = pool.connect(database_url).await.unwrap();
        let settings = AcmeSettings {
            directory_url: directory_url.to_owned(),
            email: String::new(),
            external_account: None,
            challenge: AcmeChallenge::Http01,
            http_listen: local(0),
            ca_file: Some(ca_file),
            smtp_name: MX.to_owned(),
            http_name: None,
        };
        let keys = Arc::new(SealKeys::parse([SEAL_KEY]).unwrap());
        let certificates = Certificates::new(pool.clone(), keys, clock, settings).unwrap();
        certificates.prepare().await.unwrap();
        Self { pool, certificates }
    }

    /// Makes the certificate due, as its time would.
    async fn make_due(&self) {
        sqlx::query("UPDATE certificates SET due_at = now()")
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// The next order is of a new account, which has proven no name yet.
    async fn forget_account(&self) {
        sqlx::query("DELETE FROM acme_accounts")
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// Attempts that failed in a row, why, and in how many seconds the next one is due.
    async fn trouble(&self) -> (i32, Option<String>, f64) {
        sqlx::query_as(
            "SELECT failures, last_error, extract(epoch FROM due_at - now())::float8 FROM certificates",
        )
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }
}

/// A gateway that has got its first certificate from Pebble.
async fn started(pebble: &Pebble) -> (Gateway, CertificateDer<'static>) {
    let gateway = of_pebble(Gateway::builder(), pebble, local(pebble.http_port));
    let gateway = gateway.start().await;
    let first = shows_another(gateway.tls_address(), &pebble.root_file, None).await;
    (gateway, first)
}
