//! The server's certificate: a chain and its key, read from two PEM files, and reloaded when they change. The caller
//! decides when to check them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::InconsistentKeys;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, ServerConfig};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

use crate::certificate_names::{self, CalledBy, NotFor};

/// The default name of a server without a configured one: any certificate is accepted.
const UNNAMED: &str = "localhost";

/// The certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// The file has no certificates.
    #[error("tls.certificate: {} can't be read as PEM certificates: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The file has no key.
    #[error("tls.key: {} can't be read as a PEM private key: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The two don't match, or rustls can't use them.
    #[error(
        "tls.certificate and tls.key can't be used together ({} and {}): {}",
        certificate.display(),
        key.display(),
        why_not(source)
    )]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// It isn't for the configured names.
    #[error("tls.certificate ({}): {reason}; give the certificate of that name, or set {} to a name that it is for", path.display(), setting)]
    Name {
        /// The certificate's file.
        path: PathBuf,
        /// The setting with the name.
        setting: &'static str,
        /// The mismatch.
        reason: NotFor,
    },
    /// rustls rejects its own defaults.
    #[error("TLS can't be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// Why a pair can't be used, and the remedy.
fn why_not(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the key is not the certificate's; give the two files that were issued together, the server's own certificate first in its file".to_owned()
        }
        rustls::Error::InvalidCertificate(_) => {
            "the first certificate in the file can't be read; give the file as it was issued, with the server's own certificate first".to_owned()
        }
        rustls::Error::General(_) => {
            "the key can't be used; give an ECDSA (P-256, P-384), Ed25519 or RSA key (2048 bits at least), without a password".to_owned()
        }
        error => format!("{error}; give the two files as they were issued"),
    }
}

/// A certificate whose files may be replaced while in use. New handshakes use the current one; open sessions keep
/// theirs.
#[derive(Debug)]
pub struct ServerCertificate {
    certificate: PathBuf,
    key: PathBuf,
    /// The names that it must be valid for.
    names: Vec<CalledBy>,
    shown: RwLock<Arc<CertifiedKey>>,
    /// The files at the last check, usable or not.
    seen: Mutex<FilesSeen>,
}

/// The SHA-256 of the two files, or the reason why they can't be read.
#[derive(Debug, PartialEq, Eq)]
enum FilesSeen {
    Contents([u8; 32]),
    Unreadable(String),
}

/// The contents of the two files.
struct Files {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl ServerCertificate {
    /// Reads a chain, the server's own certificate first, and its key, for any names.
    ///
    /// # Errors
    ///
    /// [`ServerTlsError`], which names the setting.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, ServerTlsError> {
        Self::load_for(certificate, key, Vec::new())
    }

    /// Like [`Self::load`]; the certificate and its successors must be valid for all these names.
    ///
    /// # Errors
    ///
    /// [`ServerTlsError`], which names the setting.
    pub fn load_for(
        certificate: &Path,
        key: &Path,
        names: Vec<CalledBy>,
    ) -> Result<Self, ServerTlsError> {
        let files = Files {
            certificate: std::fs::read(certificate)
                .map_err(|error| certificate_error(certificate, &error))?,
            key: std::fs::read(key)
                .map_err(|error| key_error(key, &error))?
                .into(),
        };
        Ok(Self {
            shown: RwLock::new(Arc::new(files.pair(certificate, key, &names)?)),
            names,
            seen: Mutex::new(files.seen()),
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Checks the files, and uses their contents from now on if they have changed; `true` then.
    ///
    /// # Errors
    ///
    /// [`ServerTlsError`] if the new files can't be used; the previous certificate stays in use. Each change is
    /// reported once.
    pub async fn reload(&self) -> Result<bool, ServerTlsError> {
        let files = self.read().await;
        let seen = match &files {
            Ok(files) => files.seen(),
            Err(error) => FilesSeen::Unreadable(error.to_string()),
        };
        {
            let mut last = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *last == seen {
                return Ok(false);
            }
            *last = seen;
        }
        let pair = Arc::new(files?.pair(&self.certificate, &self.key, &self.names)?);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = pair;
        Ok(true)
    }

    async fn read(&self) -> Result<Files, ServerTlsError> {
        let certificate = tokio::fs::read(&self.certificate)
            .await
            .map_err(|error| certificate_error(&self.certificate, &error))?;
        let key = tokio::fs::read(&self.key)
            .await
            .map_err(|error| key_error(&self.key, &error))?;
        Ok(Files {
            certificate,
            key: key.into(),
        })
    }

    /// Why some clients may refuse the certificate, although it is usable.
    #[must_use]
    pub fn unreliable(&self) -> Option<NotFor> {
        let shown = self.shown();
        let mut names = self.names.iter();
        names.find_map(|called| certificate_names::check(&shown.cert[0], called).err())
    }

    /// The current certificate.
    #[must_use]
    pub fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

/// Accepts TLS 1.2 and 1.3, with the certificate current at each handshake.
pub fn acceptor(
    certificate: Arc<impl ResolvesServerCert + 'static>,
) -> Result<TlsAcceptor, ServerTlsError> {
    let mut config = server_config(certificate)?;
    // Submission clients resume one session after the other, if at all.
    config.send_tls13_tickets = 1;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// TLS 1.2 and 1.3, with the certificate current at each handshake.
pub fn server_config(
    certificate: Arc<impl ResolvesServerCert + 'static>,
) -> Result<ServerConfig, ServerTlsError> {
    let mut provider = rustls::crypto::ring::default_provider();
    // Processors accelerate SHA-256, not SHA-384, and each handshake's key schedule consists of hashes. The sort is
    // stable, so the others keep rustls's order.
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.ignore_client_order = true;
    Ok(config)
}

impl Files {
    fn seen(&self) -> FilesSeen {
        let mut digest = Sha256::new();
        for file in [&self.certificate, &*self.key] {
            // Hashed separately, so that content moved between the files is noticed.
            digest.update(Sha256::digest(file));
        }
        FilesSeen::Contents(digest.finalize().into())
    }

    fn pair(
        &self,
        certificate: &Path,
        key: &Path,
        names: &[CalledBy],
    ) -> Result<CertifiedKey, ServerTlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| certificate_error(certificate, &error))?;
        if chain.is_empty() {
            return Err(certificate_error(certificate, &"it holds none"));
        }
        let private_key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| key_error(key, &error))?;
        let pair = CertifiedKey::from_der(chain, private_key, &provider()).map_err(|source| {
            ServerTlsError::Pair {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
                source,
            }
        })?;
        for called in names {
            match certificate_names::check(&pair.cert[0], called) {
                // Some settings have no configured name.
                Err(NotFor::Name { .. }) if called.name.eq_ignore_ascii_case(UNNAMED) => {}
                Err(reason @ NotFor::Name { .. }) => {
                    return Err(ServerTlsError::Name {
                        path: certificate.to_owned(),
                        setting: called.setting,
                        reason,
                    });
                }
                // Some clients accept it; `unreliable` says why others don't.
                Err(NotFor::CommonNameAlone { .. }) | Ok(()) => {}
            }
        }
        Ok(pair)
    }
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

fn certificate_error(path: &Path, reason: &impl ToString) -> ServerTlsError {
    ServerTlsError::Certificate {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn key_error(path: &Path, reason: &impl ToString) -> ServerTlsError {
    ServerTlsError::Key {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use tempfile::TempDir;

    use super::*;

    /// PEM of a new self-signed certificate, and of its key.
    fn make() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    struct Folder {
        _kept: TempDir,
        certificate: PathBuf,
        key: PathBuf,
    }

    impl Folder {
        fn new() -> Self {
            let folder = TempDir::new().unwrap();
            Self {
                certificate: folder.path().join("certificate.pem"),
                key: folder.path().join("key.pem"),
                _kept: folder,
            }
        }

        fn write(&self, (certificate, key): (&str, &str)) {
            std::fs::write(&self.certificate, certificate).unwrap();
            std::fs::write(&self.key, key).unwrap();
        }
    }

    /// The current leaf certificate, and the one in a PEM text.
    fn leaf(certificate: &ServerCertificate) -> CertificateDer<'static> {
        certificate.shown().cert[0].clone()
    }

    fn leaf_of(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn a_change_is_shown_once_it_can_be_used() {
        let (folder, first, second) = (Folder::new(), make(), make());
        folder.write((&first.0, &first.1));
        let shown = ServerCertificate::load(&folder.certificate, &folder.key).unwrap();
        assert!(!shown.reload().await.unwrap(), "nothing has changed");
        // As when the files are replaced one after the other.
        folder.write((&second.0, &first.1));
        assert!(shown.reload().await.is_err());
        assert_eq!(leaf(&shown), leaf_of(&first.0));
        folder.write((&second.0, &second.1));
        assert!(shown.reload().await.unwrap());
        assert_eq!(leaf(&shown), leaf_of(&second.0));
        assert!(!shown.reload().await.unwrap(), "nothing has changed");
    }

    #[tokio::test]
    async fn a_pair_for_another_name_is_refused_and_kept_out() {
        let folder = Folder::new();
        let good = rcgen::generate_simple_self_signed(vec!["good.example".to_owned()]).unwrap();
        let good = (good.cert.pem(), good.signing_key.serialize_pem());
        let other = rcgen::generate_simple_self_signed(vec!["other.example".to_owned()]).unwrap();
        let other = (other.cert.pem(), other.signing_key.serialize_pem());
        let load = || {
            let names = ["good.example", "localhost"].map(|name| CalledBy {
                setting: "smtp.host",
                name: name.to_owned(),
            });
            ServerCertificate::load_for(&folder.certificate, &folder.key, names.to_vec())
        };
        folder.write((&other.0, &other.1));
        let error = load().unwrap_err().to_string();
        for part in [
            "certificate.pem",
            "not for good.example",
            "smtp.host",
            "for other.example",
        ] {
            assert!(error.contains(part), "{error}");
        }
        folder.write((&good.0, &good.1));
        let shown = load().unwrap();
        folder.write((&other.0, &other.1));
        assert!(matches!(
            shown.reload().await,
            Err(ServerTlsError::Name { .. })
        ));
        assert_eq!(leaf(&shown), leaf_of(&good.0));
        folder.write((&good.0, &good.1));
        assert!(shown.reload().await.unwrap(), "it is good again");
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_reported_once_and_not_shown() {
        let (good, other) = (make(), make());
        let cut = |pem: &str| pem[..pem.len() / 2].to_owned();
        for (certificate, key, names) in [
            (String::new(), good.1.clone(), "certificate.pem"),
            (cut(&good.0), good.1.clone(), "certificate.pem"),
            (good.0.clone(), String::new(), "key.pem"),
            (good.0.clone(), cut(&good.1), "key.pem"),
            (good.0.clone(), other.1.clone(), "key.pem"),
            (other.0.clone(), good.1.clone(), "certificate.pem"),
        ] {
            let folder = Folder::new();
            folder.write((&good.0, &good.1));
            let shown = ServerCertificate::load(&folder.certificate, &folder.key).unwrap();
            folder.write((&certificate, &key));
            let error = shown.reload().await.unwrap_err().to_string();
            assert!(error.contains(names), "{error}");
            assert!(!shown.reload().await.unwrap(), "reported twice: {error}");
            assert_eq!(leaf(&shown), leaf_of(&good.0));
            std::fs::remove_file(&folder.key).unwrap();
            let error = shown.reload().await.unwrap_err().to_string();
            assert!(error.contains("key.pem"), "{error}");
            assert!(!shown.reload().await.unwrap(), "reported twice: {error}");
            folder.write((&other.0, &other.1));
            assert!(shown.reload().await.unwrap());
            assert_eq!(leaf(&shown), leaf_of(&other.0));
        }
    }
}
