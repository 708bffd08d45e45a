//! TLS handshakes of the HTTPS listener, including those of TLS-ALPN-01 challenges (RFC 8737), which have their own
//! ALPN protocol and carry no data.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::ServerConfig;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::issued::IssuedCertificate;
use crate::tls::{ServerTlsError, server_config};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The ALPN protocol of an ACME server (RFC 8737 §6.2).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// Finds the challenge certificate for a name.
#[derive(Clone)]
pub struct ChallengeCertificates(Arc<Find>);

type Find = dyn Fn(String) -> BoxFuture<'static, Option<Arc<CertifiedKey>>> + Send + Sync;

impl ChallengeCertificates {
    /// `find` is called with names from untrusted clients.
    pub fn new(
        find: impl Fn(String) -> BoxFuture<'static, Option<Arc<CertifiedKey>>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(find))
    }
}

impl Debug for ChallengeCertificates {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ChallengeCertificates")
    }
}

/// The TLS of an HTTPS listener.
#[derive(Debug, Clone)]
pub struct Https {
    config: Arc<ServerConfig>,
    challenges: Option<ChallengeCertificates>,
}

impl Https {
    /// Serves `certificate`, and answers challenges if they are used.
    ///
    /// # Errors
    ///
    /// If rustls rejects its own defaults.
    pub fn new(
        certificate: Arc<impl ResolvesServerCert + 'static>,
        challenges: Option<ChallengeCertificates>,
    ) -> Result<Self, ServerTlsError> {
        let mut config = server_config(certificate)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            challenges,
        })
    }

    /// The connection under TLS; `None` if the handshake failed, or was for a challenge.
    pub(super) async fn accept(&self, socket: TcpStream) -> Option<TlsStream<TcpStream>> {
        match timeout(HANDSHAKE, self.shake_hands(socket)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }

    async fn shake_hands(
        &self,
        socket: TcpStream,
    ) -> Result<Option<TlsStream<TcpStream>>, std::io::Error> {
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let hello = start.client_hello();
        if let Some(challenges) = &self.challenges
            && is_challenge(&hello)
        {
            let Some(name) = hello.server_name().map(str::to_ascii_lowercase) else {
                return Ok(None);
            };
            let Some(certificate) = (challenges.0)(name).await else {
                return Ok(None);
            };
            let certificate = Arc::new(IssuedCertificate::new(certificate));
            let mut config = server_config(certificate).map_err(std::io::Error::other)?;
            config.alpn_protocols = vec![ACME_TLS.to_vec()];
            let mut stream = start.into_stream(Arc::new(config)).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        start.into_stream(Arc::clone(&self.config)).await.map(Some)
    }
}

/// Whether a client offers only the challenge's protocol.
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|offered| offered.eq([ACME_TLS]))
}
