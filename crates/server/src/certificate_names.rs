//! The names that a certificate is valid for, by the rules that clients use (RFC 9525).

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error};

/// The object identifiers of `subjectAltName` (RFC 5280 §4.2.1.6) and of a subject's `commonName`, in DER.
const SUBJECT_ALT_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// A name by which clients reach the server, and the setting with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledBy {
    /// The setting.
    pub setting: &'static str,
    /// A host name, or an address.
    pub name: String,
}

/// Why clients that verify a certificate refuse it for a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFor {
    /// It is for other names.
    #[error("it is not for {}, the name in {}{}; clients that check it refuse the connection", called.name, called.setting, others(presented))]
    Name {
        /// The expected name.
        called: CalledBy,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// It has the name only as `commonName`, which few clients still accept.
    #[error(
        "it has no subjectAltName, and {}, the name in {}, only as its commonName, which few clients still accept: have it issued with a subjectAltName", called.name, called.setting
    )]
    CommonNameAlone {
        /// The name.
        called: CalledBy,
    },
}

fn others(presented: &[String]) -> String {
    match presented {
        [] => String::new(),
        names => format!(", but for {}", names.join(", ")),
    }
}

/// Whether a certificate is valid for a name.
#[must_use]
pub fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    verify(certificate, name).is_ok()
}

/// Checks a certificate against one of its server's names.
///
/// # Errors
///
/// [`NotFor`]
pub fn check(certificate: &CertificateDer<'_>, called: &CalledBy) -> Result<(), NotFor> {
    let Err(presented) = verify(certificate, &called.name) else {
        return Ok(());
    };
    let called = called.clone();
    if contains(certificate, &SUBJECT_ALT_NAME) || !has_common_name(certificate, &called.name) {
        return Err(NotFor::Name { called, presented });
    }
    Err(NotFor::CommonNameAlone { called })
}

/// The error is the list of names in the certificate.
fn verify(certificate: &CertificateDer<'_>, name: &str) -> Result<(), Vec<String>> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(|_| Vec::new())?;
    let name = ServerName::try_from(name).map_err(|_| Vec::new())?;
    match rustls::client::verify_server_name(&parsed, &name) {
        Ok(()) => Ok(()),
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) => Err(presented.iter().map(|name| bare(name)).collect()),
        Err(_) => Err(Vec::new()),
    }
}

/// The bare name in rustls's `DnsName("gateway.example")` or `IpAddress(192.0.2.1)`.
fn bare(presented: &str) -> String {
    let within = presented.split_once('(');
    let within = within.map_or(presented, |(_, within)| within.trim_end_matches(')'));
    within.trim_matches('"').to_owned()
}

fn contains(certificate: &[u8], sequence: &[u8]) -> bool {
    certificate
        .windows(sequence.len())
        .any(|window| window == sequence)
}

/// Whether it has this `commonName`, for the subject or the issuer.
fn has_common_name(certificate: &[u8], name: &str) -> bool {
    let Ok(length) = u8::try_from(name.len()) else {
        return false;
    };
    // The string's type is one byte, which is ignored; a name is shorter than 128 bytes, so its length is one byte too.
    let value_at = COMMON_NAME.len() + 2;
    certificate
        .windows(value_at + name.len())
        .filter(|window| window.starts_with(&COMMON_NAME) && window[value_at - 1] == length)
        .any(|window| window[value_at..].eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn make(names: &[&str], common_name: &str) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name.remove(DnType::CommonName);
        parameters
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().into()
    }

    fn called(name: &str) -> CalledBy {
        CalledBy {
            setting: "smtp.host",
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_certificate_is_for_its_alternative_names_alone() {
        let certificate = make(&["smtp.a.example", "*.b.example", "192.0.2.7"], "c.example");
        for name in [
            "smtp.a.example",
            "SMTP.a.example",
            "x.b.example",
            "192.0.2.7",
        ] {
            assert_eq!(check(&certificate, &called(name)), Ok(()), "{name}");
        }
        for name in [
            "c.example",
            "a.example",
            "x.y.b.example",
            "192.0.2.1",
            "not a name",
            "",
        ] {
            let refused = check(&certificate, &called(name)).unwrap_err();
            assert!(matches!(refused, NotFor::Name { .. }), "{name}: {refused}");
        }
        let told = check(&certificate, &called("c.example")).unwrap_err();
        assert_eq!(
            told.to_string(),
            "it is not for c.example, the name in smtp.host, but for smtp.a.example, *.b.example, 192.0.2.7; clients that check it refuse the connection"
        );
    }

    #[test]
    fn a_common_name_counts_where_there_is_nothing_else() {
        let certificate = make(&[], "smtp.a.example");
        let alone = check(&certificate, &called("Smtp.A.example")).unwrap_err();
        assert!(matches!(alone, NotFor::CommonNameAlone { .. }), "{alone}");
        for name in ["a.example", "smtp.a.example.org", "xsmtp.a.example", ""] {
            let refused = check(&certificate, &called(name)).unwrap_err();
            assert!(matches!(refused, NotFor::Name { .. }), "{name}: {refused}");
        }
    }
}
