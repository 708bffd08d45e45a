//! The source of the listeners' certificates: files, or an ACME server.

use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use url::{Host, Url};
use zeroize::Zeroizing;

use super::reader::Reader;
use mailgate_types::email_address::EmailAddress;

/// The source of certificates.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// PEM files, renewed outside of the gateway.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// An ACME server.
    Acme(AcmeSettings),
}

/// How control of a name is proven to an ACME server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcmeChallenge {
    /// By HTTP on port 80 (RFC 8555 §8.3).
    Http01,
    /// By TLS on port 443 (RFC 8737).
    TlsAlpn01,
}

/// The account at an ACME server, and the names to get certificates for.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// The server's directory.
    pub directory_url: String,
    /// The contact address; empty: none.
    pub email: String,
    /// The external account to bind a new account to (RFC 8555 §7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// The challenge to use.
    pub challenge: AcmeChallenge,
    /// The address for HTTP-01 challenges.
    pub http_listen: SocketAddr,
    /// Further root certificates for the server (PEM).
    pub ca_file: Option<PathBuf>,
    /// The SMTP listeners' name.
    pub smtp_name: String,
    /// The name of the HTTPS listener; `None`: there is none.
    pub http_name: Option<String>,
}

/// A customer's credentials at a certificate authority, for external account binding.
#[derive(Debug, Clone)]
pub struct ExternalAccount {
    /// The id of the customer's account.
    pub key_id: String,
    /// Signs the binding (HS256).
    pub mac_key: SecretSlice<u8>,
}

impl AcmeSettings {
    /// The names, each once.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![self.smtp_name.clone()];
        names.extend(self.http_name.clone());
        names.dedup();
        names
    }
}

const OR_ACME: &str =
    "or let the gateway get certificates by itself: acme.challenge and acme.terms_agreed";

/// `None` only if the reader has recorded a problem.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<CertificateSource> {
    let challenge = reader.choice(
        "acme.challenge",
        &[
            ("", None),
            ("http-01", Some(AcmeChallenge::Http01)),
            ("tls-alpn-01", Some(AcmeChallenge::TlsAlpn01)),
        ],
    );
    let [certificate, key] = ["tls.certificate", "tls.key"].map(|name| reader.path(name));
    let directory_url = reader.url("acme.directory_url");
    let email = reader.text("acme.email");
    let is_agreed = reader.flag("acme.terms_agreed");
    let http_listen = reader.required_listen_address("acme.http_listen");
    let ca_file = reader.path("acme.ca_file");
    let external_account = external_account(reader);
    let Some(challenge) = challenge? else {
        for (name, path, what) in [
            ("tls.certificate", &certificate, "the chain"),
            ("tls.key", &key, "the private key"),
        ] {
            if path.is_none() {
                reader.problem(
                    name,
                    format!("is required: a PEM file with {what}; {OR_ACME}"),
                );
            }
        }
        return Some(CertificateSource::Files {
            certificate: certificate.unwrap_or_default(),
            key: key.unwrap_or_default(),
        });
    };
    if certificate.is_some() || key.is_some() {
        let text = "must be empty together with tls.certificate and tls.key: certificates come from files or from an ACME server";
        reader.problem("acme.challenge", text);
    }
    if !is_agreed {
        let text = "must be true: read the terms of the ACME server first (Let's Encrypt's are at https://letsencrypt.org/repository)";
        reader.problem("acme.terms_agreed", text);
    }
    if !directory_url.starts_with("https://") {
        reader.problem("acme.directory_url", "must be an https:// address");
    }
    if !email.is_empty() && EmailAddress::parse(&email).is_err() {
        reader.problem("acme.email", "must be an email address, or empty");
    }
    let smtp_name = reader.text("smtp.host").to_ascii_lowercase();
    if !is_public_name(&smtp_name) {
        let text = "must be the public name that clients connect to, such as mx.gateway.example: a certificate is ordered for it";
        reader.problem("smtp.host", text);
    }
    let serves_https = !reader.text("http.tls_listen").is_empty();
    let http_name = if serves_https {
        let host = host(&reader.url("http.base_url"));
        if host.is_none() {
            let text = "must be an https:// address with a public name: a certificate is ordered for it, for http.tls_listen";
            reader.problem("http.base_url", text);
        }
        host
    } else {
        None
    };
    if challenge == AcmeChallenge::TlsAlpn01 && !serves_https {
        let text = "tls-alpn-01 is answered by http.tls_listen, to which port 443 must lead: set it, or take http-01";
        reader.problem("acme.challenge", text);
    }
    Some(CertificateSource::Acme(AcmeSettings {
        directory_url,
        email,
        external_account,
        challenge,
        http_listen: http_listen?,
        ca_file,
        smtp_name,
        http_name,
    }))
}

/// `None` if neither is set, or the reader has recorded a problem.
fn external_account(reader: &mut Reader<'_>) -> Option<ExternalAccount> {
    let key_id = reader.text("acme.eab_key_id").trim().to_owned();
    let mac_key = SecretString::from(reader.text("acme.eab_mac_key"));
    let (mine, others) = match (key_id.is_empty(), mac_key.expose_secret().is_empty()) {
        (true, true) => return None,
        (true, false) => ("acme.eab_key_id", "acme.eab_mac_key"),
        (false, true) => ("acme.eab_mac_key", "acme.eab_key_id"),
        (false, false) => {
            let decoded = decode(mac_key.expose_secret());
            if decoded.is_none() {
                let text = "must be the MAC key of the certificate authority, in base64url";
                reader.problem("acme.eab_mac_key", text);
            }
            return Some(ExternalAccount {
                key_id,
                mac_key: decoded?,
            });
        }
    };
    reader.problem(
        mine,
        format!("is required with {others}: the certificate authority gives both"),
    );
    None
}

/// Authorities use base64url (RFC 8555 §7.3.4), some with padding, or plain base64.
fn decode(mac_key: &str) -> Option<SecretSlice<u8>> {
    let text = Zeroizing::new(mac_key.trim().replace('+', "-").replace('/', "_"));
    let key = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    (!key.is_empty()).then(|| key.into())
}

/// The name in an `https` address.
fn host(base_url: &str) -> Option<String> {
    let url = Url::parse(base_url).ok()?;
    match url.host()? {
        Host::Domain(name) if url.scheme() == "https" && is_public_name(name) => {
            Some(name.to_ascii_lowercase())
        }
        _ => None,
    }
}

/// Whether certificates can be ordered for it: several labels of letters, digits and hyphens (RFC 1035 §2.3.1), not an
/// address.
fn is_public_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &str| label.bytes().all(|letter| letter.is_ascii_digit());
    name.len() <= 253
        && name.contains('.')
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_certificates_can_be_ordered_for() {
        for (name, is_so) in [
            ("mx.gateway.example", true),
            ("xn--bcher-kva.example", true),
            ("localhost", false),
            ("", false),
            ("mx..example", false),
            ("mx.example.", false),
            ("-mx.example", false),
            ("m_x.example", false),
            ("192.0.2.1", false),
            ("bücher.example", false),
            ("*.example.com", false),
            ("mx.example/../x", false),
        ] {
            assert_eq!(is_public_name(name), is_so, "{name}");
        }
        assert!(!is_public_name(&format!("{}.example", "a".repeat(64))));
    }

    #[test]
    fn the_name_of_an_address() {
        assert_eq!(
            host("https://Gateway.example:8443/x").as_deref(),
            Some("gateway.example")
        );
        for none in [
            "",
            "http://gateway.example",
            "https://192.0.2.1",
            "https://localhost",
        ] {
            assert_eq!(host(none), None, "{none}");
        }
    }
}
