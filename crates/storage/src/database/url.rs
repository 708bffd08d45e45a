//! The database's URL, and its TLS parameters, as libpq reads them (the Postgres manual, "SSL Support"), where sqlx
//! differs.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustls::CertificateError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

/// The name that stands for the machine's own roots.
const SYSTEM: &str = "system";

/// The advice if the reason says more.
const ANOTHER: &str = "give the server another certificate";

/// Why a URL can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It isn't one.
    #[error("{0}; write it as postgres://user:password@host:port/database")]
    Form(#[source] sqlx::Error),
    /// It names roots that would verify nothing.
    #[error(
        "sslrootcert verifies nothing with sslmode={0}; write sslmode=verify-full, which verifies the server's certificate and its name"
    )]
    Unverified(&'static str),
    /// The machine's roots would verify anyone's server.
    #[error(
        "sslrootcert=system needs sslmode=verify-full: without the name, anybody's certificate would do"
    )]
    AnyServer,
    /// The file of the roots.
    #[error("sslrootcert {}: {reason}", .path.display())]
    Roots {
        /// The path as in the URL.
        path: PathBuf,
        /// The error in it.
        reason: String,
    },
}

/// How to connect.
///
/// # Errors
/// [`UrlError`], with a text for the operator that contains no password.
pub(crate) fn read(url: &str) -> Result<PgConnectOptions, UrlError> {
    let options = PgConnectOptions::from_str(url).map_err(UrlError::Form)?;
    let roots = roots(url);
    let has_roots = roots.is_some();
    match options.get_ssl_mode() {
        PgSslMode::Allow if has_roots => return Err(UrlError::Unverified("allow")),
        PgSslMode::Prefer if has_roots => return Err(UrlError::Unverified("prefer")),
        PgSslMode::Require if has_roots => {}
        PgSslMode::VerifyCa | PgSslMode::VerifyFull => {}
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::Require => {
            return Ok(options);
        }
    }
    let is_name_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    // sqlx trusts the machine's roots besides the given ones, and they verify anyone's server: so every verification
    // includes the name.
    let options = options.ssl_mode(PgSslMode::VerifyFull);
    let Some(roots) = roots else {
        return Ok(options.ssl_root_cert_from_pem(Vec::new()));
    };
    if roots == SYSTEM {
        return (is_name_verified.then(|| options.ssl_root_cert_from_pem(Vec::new())))
            .ok_or(UrlError::AnyServer);
    }
    // From the environment, sqlx also accepts the certificates themselves.
    if !roots.starts_with("-----BEGIN") {
        let path = Path::new(&roots);
        require_certificates(path).map_err(|reason| UrlError::Roots {
            path: path.to_owned(),
            reason,
        })?;
    }
    Ok(options)
}

/// The roots as sqlx finds them: the last parameter of that name, else the environment's. Empty means none, as in
/// libpq.
fn roots(url: &str) -> Option<String> {
    let named = Url::parse(url).ok().and_then(|url| {
        (url.query_pairs())
            .filter(|(name, _)| matches!(&**name, "sslrootcert" | "ssl-root-cert" | "ssl-ca"))
            .last()
            .map(|(_, value)| value.into_owned())
    });
    (named.or_else(|| std::env::var("PGSSLROOTCERT").ok())).filter(|roots| !roots.is_empty())
}

/// A file without any would leave only the machine's roots, silently.
fn require_certificates(path: &Path) -> Result<(), String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string())?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err("it holds no certificate (\"-----BEGIN CERTIFICATE-----\")".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("not certificates in PEM: {error}")),
    }
}

/// The advice for a rejected server certificate; `None` for any other error.
pub(crate) fn certificate_advice(error: &sqlx::Error) -> Option<&'static str> {
    let sqlx::Error::Io(error) = error else {
        return None;
    };
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(reason) = error else {
        return Some("see whether it is Postgres that listens there, with TLS 1.2 or 1.3");
    };
    Some(match reason {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not from an authority in sslrootcert: give it the file of the one that signed it"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another name, which is verified with every sslrootcert: name the host in database.url as the certificate does, or make one with this host as its subjectAltName (a common name doesn't count)"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: see the clocks of both machines"
        }
        // webpki's own errors, whose texts are their names.
        CertificateError::Other(other) => match other.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "the server's certificate is self-signed, an authority's and not a server's: make one that an authority of yours signs"
            }
            "UnsupportedCertVersion" => {
                "the server's certificate is of X.509 version 1: make one of version 3, with the host as its subjectAltName (openssl x509 -req needs -extfile for it)"
            }
            _ => ANOTHER,
        },
        _ => ANOTHER,
    })
}
