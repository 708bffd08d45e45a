//! The handshake of HTTP's TLS, and beside it the one that proves a name to an ACME server (TLS-ALPN-01, RFC 8737),
//! which is asked for by a protocol of its own and carries nothing.

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

/// The protocol by which an ACME server asks (RFC 8737 §6.2).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// Finds the certificate that proves a name at the moment.
#[derive(Clone)]
pub struct ChallengeCertificates(Arc<Find>);

type Find = dyn Fn(String) -> BoxFuture<'static, Option<Arc<CertifiedKey>>> + Send + Sync;

impl ChallengeCertificates {
    /// `find` answers any name that a stranger may send.
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

/// TLS of an HTTP listener.
#[derive(Debug, Clone)]
pub struct Https {
    config: Arc<ServerConfig>,
    challenges: Option<ChallengeCertificates>,
}

impl Https {
    /// Shows `certificate`, and answers challenges if there may be some.
    ///
    /// # Errors
    ///
    /// If rustls refuses its own defaults.
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

    /// The connection under TLS; `None` if none came about, or if it was for a challenge.
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

/// Whether a client offers the challenge's protocol and no other one.
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|offered| offered.eq([ACME_TLS]))
}
