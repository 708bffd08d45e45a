//! The certificate that Postfix and Dovecot show, and the authority that signed it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// PEM files in the folder of the peers.
pub struct Certificate {
    pub authority: PathBuf,
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// Makes an authority and a certificate for `localhost` and 127.0.0.1, both on P-256.
pub fn create(folder: &Path) -> Certificate {
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "Test mailbox provider authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    server
        .subject_alt_names
        .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    server
        .distinguished_name
        .push(DnType::CommonName, "localhost");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Python's ssl module asks for it.
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let server_certificate = server.signed_by(&server_key, &issuer).unwrap();

    let files = Certificate {
        authority: folder.join("ca.pem"),
        chain: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    fs::write(&files.authority, authority_certificate.pem()).unwrap();
    fs::write(&files.chain, server_certificate.pem()).unwrap();
    fs::write(&files.key, server_key.serialize_pem()).unwrap();
    files
}
