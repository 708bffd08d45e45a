//! The certificate of a developer's machine: a P-256 authority, and a leaf for localhost and the requested names, in
//! one folder.
//!
//! The authority's key is discarded once the leaf is signed, so a client that trusts `ca.pem` trusts only this leaf. A
//! new leaf therefore comes with a new authority.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use mailgate_types::hex::hex;

/// Names that every leaf covers.
const ALWAYS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Validity of authority and leaf, in days: below the 398 that browsers accept.
const VALIDITY_DAYS: i64 = 397;

/// A leaf with less than this validity left is replaced, in days.
const RENEWAL_DAYS: i64 = 7;

/// Validity begins this much earlier, for clients with slow clocks.
const BACKDATED: TimeDelta = TimeDelta::hours(1);

/// Paths of the PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The authority, for clients to trust.
    pub ca: PathBuf,
    /// The chain for servers: the leaf, then the authority.
    pub certificate: PathBuf,
    /// The leaf's key, PKCS #8, mode 0600.
    pub key: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A name isn't valid in a certificate, or signing failed.
    #[error("could not make the certificate for {names}: {source}")]
    Make {
        /// The names, separated by commas.
        names: String,
        /// The library's error.
        source: rcgen::Error,
    },
    /// The time is outside the range of certificates.
    #[error("the clock is at {0}, which no certificate can cover")]
    Time(DateTime<Utc>),
    /// A file operation failed.
    #[error("could not write {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The digest of the files, written last, so that a set cut short by a crash has no valid one.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    names: BTreeSet<String>,
    not_after: DateTime<Utc>,
    /// SHA-256 of authority, chain and key together, hex.
    digest: String,
}

/// Returns the certificate files of `directory`, created anew unless the existing ones match each other and cover
/// `names` for another week.
///
/// # Errors
/// See [`CertificateError`].
pub fn ensure(
    directory: &Path,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<CertificateFiles, CertificateError> {
    let files = CertificateFiles {
        ca: directory.join("ca.pem"),
        certificate: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
    };
    let description_path = directory.join("certificate.json");
    let names: BTreeSet<String> = ALWAYS
        .into_iter()
        .map(str::to_owned)
        .chain(names.iter().map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    if still_good(&description_path, &files, &names, now) {
        return Ok(files);
    }
    let made = make(&names, now)?;
    fs::create_dir_all(directory).map_err(io_error(directory))?;
    write(&files.ca, made.ca.as_bytes(), 0o644)?;
    write(&files.certificate, made.certificate.as_bytes(), 0o644)?;
    write(&files.key, made.key.as_bytes(), 0o600)?;
    let description = Description {
        names,
        not_after: now + TimeDelta::days(VALIDITY_DAYS),
        digest: digest([&made.ca, &made.certificate, &made.key]),
    };
    let description = serde_json::to_vec_pretty(&description)
        .map_err(|error| io_error(&description_path)(error.into()))?;
    write(&description_path, &description, 0o644)?;
    Ok(files)
}

fn still_good(
    description: &Path,
    files: &CertificateFiles,
    names: &BTreeSet<String>,
    now: DateTime<Utc>,
) -> bool {
    // Anything unreadable is created anew.
    let check = || {
        let found: Description = serde_json::from_slice(&fs::read(description).ok()?).ok()?;
        let [ca, certificate, key] =
            [&files.ca, &files.certificate, &files.key].map(|path| fs::read_to_string(path).ok());
        let whole = digest([&ca?, &certificate?, &key?]) == found.digest;
        let lasts = found.not_after - TimeDelta::days(RENEWAL_DAYS) > now;
        // If the clock was set back, the certificate isn't valid yet.
        let begun = found.not_after - TimeDelta::days(VALIDITY_DAYS) - BACKDATED <= now;
        Some(whole && lasts && begun && names.is_subset(&found.names))
    };
    check().unwrap_or(false)
}

fn digest(parts: [&str; 3]) -> String {
    hex(&Sha256::digest(parts.concat()))
}

struct Made {
    ca: String,
    certificate: String,
    key: String,
}

fn make(names: &BTreeSet<String>, now: DateTime<Utc>) -> Result<Made, CertificateError> {
    let names: Vec<String> = names.iter().cloned().collect();
    let listed = names.join(", ");
    let seconds = |time: DateTime<Utc>| {
        u64::try_from(time.timestamp())
            .map(Duration::from_secs)
            .map_err(|_| CertificateError::Time(now))
    };
    let not_before = seconds(now - BACKDATED)?;
    let not_after = seconds(now + TimeDelta::days(VALIDITY_DAYS))?;
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let sign = || {
        let mut authority = CertificateParams::default();
        authority.distinguished_name = common_name("Mailgate development authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.not_before = epoch + not_before;
        authority.not_after = epoch + not_after;
        let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let authority_certificate = authority.self_signed(&authority_key)?;

        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name = common_name("Mailgate development");
        leaf.is_ca = IsCa::ExplicitNoCa;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        leaf.not_before = epoch + not_before;
        leaf.not_after = epoch + not_after;
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let issuer = Issuer::from_params(&authority, &authority_key);
        let leaf_certificate = leaf.signed_by(&leaf_key, &issuer)?;

        let ca = authority_certificate.pem();
        Ok(Made {
            certificate: leaf_certificate.pem() + &ca,
            ca,
            key: leaf_key.serialize_pem(),
        })
    };
    sign().map_err(|source| CertificateError::Make {
        names: listed,
        source,
    })
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::OrganizationName, "Mailgate");
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Writes the file atomically.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CertificateError> {
    let place = || {
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    place().map_err(io_error(path))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CertificateError {
    let path = path.to_owned();
    move |source| CertificateError::Io { path, source }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use std::process::Command;

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::sign::CertifiedKey;

    use super::*;

    fn bytes(files: &CertificateFiles) -> [Vec<u8>; 3] {
        [&files.ca, &files.certificate, &files.key].map(|path| fs::read(path).unwrap())
    }

    #[test]
    fn openssl_accepts_the_chain_for_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["Mail.Example.test".to_owned(), "192.0.2.7".to_owned()];
        let files = ensure(folder.path(), &names, Utc::now()).unwrap();
        for (option, name) in [
            ("-verify_hostname", "localhost"),
            ("-verify_hostname", "mail.example.test"),
            ("-verify_ip", "127.0.0.1"),
            ("-verify_ip", "::1"),
            ("-verify_ip", "192.0.2.7"),
        ] {
            let output = Command::new("openssl")
                .args(["verify", "-x509_strict", "-purpose", "sslserver"])
                .args([option, name, "-CAfile"])
                .args([&files.ca, &files.certificate])
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
        }
        let mode = fs::metadata(&files.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(chain.len(), 2, "the leaf and its authority");
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).expect("the key belongs to the leaf");
    }

    #[test]
    fn files_stay_until_a_name_is_missing_or_the_end_is_near() {
        let folder = tempfile::tempdir().unwrap();
        let now = Utc::now();
        let name = ["a.test".to_owned()];
        let first = bytes(&ensure(folder.path(), &name, now).unwrap());
        let again = |names: &[String], days: i64| {
            bytes(&ensure(folder.path(), names, now + TimeDelta::days(days)).unwrap())
        };
        assert_eq!(again(&name, 0), first);
        assert_eq!(again(&[], VALIDITY_DAYS - RENEWAL_DAYS - 1), first);
        let other = again(&["b.test".to_owned()], 0);
        assert_ne!(other, first);
        let renewed = again(&["b.test".to_owned()], VALIDITY_DAYS - RENEWAL_DAYS);
        assert_ne!(renewed, other);
        let earlier = again(&["b.test".to_owned()], 0);
        assert_ne!(earlier, renewed, "a certificate of the future is of no use");
    }

    #[test]
    fn a_set_that_does_not_belong_together_is_remade() {
        let folder = tempfile::tempdir().unwrap();
        let now = Utc::now();
        let files = ensure(folder.path(), &[], now).unwrap();
        let first = bytes(&files);
        fs::write(&files.key, "cut").unwrap();
        ensure(folder.path(), &[], now).unwrap();
        assert_ne!(bytes(&files), first);
        fs::remove_file(&files.ca).unwrap();
        ensure(folder.path(), &[], now).unwrap();
        assert!(files.ca.exists());
    }

    #[test]
    fn a_name_that_is_no_name_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let refused = ensure(folder.path(), &["bücher.example".to_owned()], Utc::now());
        assert!(matches!(refused, Err(CertificateError::Make { .. })));
    }
}
