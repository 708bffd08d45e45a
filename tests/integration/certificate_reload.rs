//! A certificate that is renewed while its listener runs, as SMTP clients see it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use mailgate::certificates::reload;
use mailgate_sandbox::certificates::{self, CertificateFiles};
use mailgate_sandbox::provider;
use mailgate_server::shutdown::Shutdown;
use mailgate_server::tls::{self, ServerCertificate};
use mailgate_types::clock::SystemClock;
use mailgate_types::plugin::TransportKind;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::patience::{self, PATIENCE};
use crate::support::smtp_client::SmtpClient;

/// A listener with STARTTLS, the files of its certificate, and another set of files.
struct Server {
    address: SocketAddr,
    certificate: Arc<ServerCertificate>,
    files: CertificateFiles,
    renewed: CertificateFiles,
    shutdown: Shutdown,
    _folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = TempDir::new().unwrap();
        let make = |name| certificates::ensure(&folder.path().join(name), &[], Utc::now()).unwrap();
        let (files, renewed) = (make("first"), make("second"));
        let certificate = ServerCertificate::load(&files.certificate, &files.key).unwrap();
        let certificate = Arc::new(certificate);
        let shutdown = Shutdown::default();
        let directory = folder.path().join("sandbox");
        let any = "127.0.0.1:0".parse().unwrap();
        let settings = provider::Settings {
            listen: any,
            smtp_listen: any,
            access_token_seconds: 60,
            plugin_a: TransportKind::Smtp,
            plugin_b: TransportKind::Smtp,
            base_urls: Vec::new(),
        };
        let server = provider::start(
            &settings,
            &directory,
            tls::acceptor(Arc::clone(&certificate)).unwrap(),
            Arc::new(SystemClock),
            &shutdown,
        );
        Self {
            address: server.await.unwrap().smtp_address,
            certificate,
            files,
            renewed,
            shutdown,
            _folder: folder,
        }
    }

    /// A session for which the certificate's authority must be this one.
    async fn session(&self, authority: &Path) -> SmtpClient {
        let mut client = SmtpClient::connect(self.address).await;
        client.reply().await;
        client.command("EHLO client.example").await;
        let reply = client.command("STARTTLS").await;
        assert!(reply.starts_with("220 "), "{reply}");
        let mut client = client.encrypt(authority).await;
        assert!(greets(&mut client).await);
        client
    }
}

/// Whether a session goes on.
async fn greets(client: &mut SmtpClient) -> bool {
    let reply = client.command("EHLO client.example").await;
    reply.starts_with("250-")
}

#[tokio::test]
async fn new_connections_see_a_renewed_certificate_and_open_ones_go_on() {
    let server = Server::start().await;
    let mut open = server.session(&server.files.ca).await;
    let every = Duration::from_millis(10);
    let stop = server.shutdown.soft.clone();
    let worker = reload::run(Arc::clone(&server.certificate), every, stop);
    let renewal = async {
        let former = server.certificate.shown();
        fs::copy(&server.renewed.certificate, &server.files.certificate).unwrap();
        fs::copy(&server.renewed.key, &server.files.key).unwrap();
        patience::until("look of the worker", async || {
            !Arc::ptr_eq(&former, &server.certificate.shown())
        })
        .await;
        server.session(&server.renewed.ca).await;
        assert!(greets(&mut open).await);
        server.shutdown.soft.cancel();
    };
    let (ended, ()) = tokio::join!(timeout(PATIENCE, worker), renewal);
    assert!(ended.is_ok(), "the worker goes on after the end");
}

#[tokio::test]
async fn a_broken_replacement_leaves_the_former_certificate() {
    let server = Server::start().await;
    let mut open = server.session(&server.files.ca).await;
    // The key stays the former one's.
    fs::copy(&server.renewed.certificate, &server.files.certificate).unwrap();
    let error = server.certificate.reload().await.unwrap_err().to_string();
    for file in [&server.files.certificate, &server.files.key] {
        assert!(error.contains(&file.display().to_string()), "{error}");
    }
    server.session(&server.files.ca).await;
    assert!(greets(&mut open).await);
}
