//! A provider's servers for submission and IMAP.

use super::REQUIRED;
use super::defaults::Defaults;
use crate::reader::Reader;

/// How the connection to the provider's submission server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionTls {
    /// STARTTLS, required.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// None: only for a relay on this machine.
    Clear,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name, which must be in its certificate.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// Submission with STARTTLS (RFC 6409 §3.1), and with implicit TLS (RFC 8314 §7.3).
const STARTTLS_PORT: u16 = 587;
const IMPLICIT_TLS_PORT: u16 = 465;

/// The port of a local mail server (RFC 5321 §4.5.4.2).
const RELAY_PORT: u16 = 25;

/// IMAP with implicit TLS (RFC 8314 §3.2).
const IMAP_PORT: u16 = 993;

pub(super) fn read_smtp(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
    required: bool,
) -> Option<(Endpoint, SubmissionTls)> {
    let tls = if reader.text(&name("smtp_tls")).is_empty() {
        SubmissionTls::StartTls
    } else {
        reader.choice(
            &name("smtp_tls"),
            &[
                ("starttls", SubmissionTls::StartTls),
                ("implicit", SubmissionTls::Implicit),
            ],
        )?
    };
    let mut host = reader.text(&name("smtp_host"));
    if host.is_empty() {
        defaults.smtp_host.clone_into(&mut host);
        if host.is_empty() && required {
            reader.problem(&name("smtp_host"), REQUIRED);
        }
    }
    let port = match (reader.number(&name("smtp_port"), 0, u16::MAX), tls) {
        (0, tls) => usual_port(tls),
        (port, _) => port,
    };
    Some((Endpoint { host, port }, tls))
}

/// The usual port for submission.
pub(crate) const fn usual_port(tls: SubmissionTls) -> u16 {
    match tls {
        SubmissionTls::StartTls => STARTTLS_PORT,
        SubmissionTls::Implicit => IMPLICIT_TLS_PORT,
        SubmissionTls::Clear => RELAY_PORT,
    }
}

pub(super) fn read_imap(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    defaults: &Defaults,
    by_smtp: bool,
) -> Option<Endpoint> {
    let mut host = reader.text(&name("imap_host"));
    if host.is_empty() {
        defaults.imap_host.clone_into(&mut host);
    }
    let port = match reader.number(&name("imap_port"), 0, u16::MAX) {
        0 => IMAP_PORT,
        port => port,
    };
    (by_smtp && !host.is_empty()).then_some(Endpoint { host, port })
}
