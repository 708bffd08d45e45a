//! Dovecot and Postfix, whoever says which tokens are valid.

use super::certificate::{self, Certificate};
use super::dovecot::{self, Dovecot, Submission};
use super::postfix::Postfix;
use super::process::Household;
use crate::support::ports;

pub struct MailServers {
    pub certificate: Certificate,
    pub starttls_port: u16,
    pub tls_port: u16,
    pub imaps_port: u16,
    /// Dovecot's own submission server, if it has a relay.
    pub submission_port: u16,
}

/// What differs.
pub struct Terms<'a> {
    /// Asked about tokens.
    pub introspection_url: &'a str,
    /// What Dovecot offers.
    pub mechanisms: &'a str,
    /// Where Dovecot's own submission server sends mail on to; it has none otherwise.
    pub relay_port: Option<u16>,
}

impl MailServers {
    pub async fn start(household: &Household, terms: Terms<'_>) -> Self {
        let certificate = certificate::create(household.folder());
        let [
            starttls_port,
            tls_port,
            imaps_port,
            sasl_port,
            submission_port,
        ] = ports::reserve();
        let dovecot = Dovecot {
            introspection_url: terms.introspection_url,
            certificate: &certificate,
            imaps_port,
            sasl_port,
            submission: terms.relay_port.map(|relay_port| Submission {
                port: submission_port,
                relay_port,
            }),
            mechanisms: terms.mechanisms,
        };
        let postfix = Postfix {
            certificate: &certificate,
            dovecot_configuration: &dovecot::configuration_file(household),
            starttls_port,
            tls_port,
            sasl_port,
        };
        tokio::join!(dovecot.start(household), postfix.start(household));
        Self {
            certificate,
            starttls_port,
            tls_port,
            imaps_port,
            submission_port,
        }
    }
}
