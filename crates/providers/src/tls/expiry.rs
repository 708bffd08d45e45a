//! The validity period of certificates, read from their DER encoding (RFC 5280 §4.1) without verifying them.

use chrono::{DateTime, Utc};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The earliest expiry among a PEM file's certificates; `None` if it has none that can be read.
#[must_use]
pub fn soonest(pem: &[u8]) -> Option<DateTime<Utc>> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(|certificate| not_after(&certificate.ok()?))
        .min()
}

/// The validity period of the first certificate in a PEM file; `None` if it can't be read.
#[must_use]
pub fn validity(pem: &[u8]) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    dates(&CertificateDer::pem_slice_iter(pem).next()?.ok()?)
}

/// The validity period of a certificate; `None` if it can't be read.
#[must_use]
pub fn validity_of(certificate: &CertificateDer<'_>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    dates(certificate)
}

/// The end of a certificate's validity.
fn not_after(certificate: &[u8]) -> Option<DateTime<Utc>> {
    dates(certificate).map(|(_, ends)| ends)
}

fn dates(certificate: &[u8]) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    let [begins, ends] = [validity.not_before, validity.not_after]
        .map(|time| DateTime::from_timestamp(time.timestamp(), 0));
    Some((begins?, ends?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use chrono::NaiveDate;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32) -> rcgen::Certificate {
        let mut params = CertificateParams::new(["gateway.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 2, 3);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn midnight(year: i32) -> DateTime<Utc> {
        let date = NaiveDate::from_ymd_opt(year, 2, 3).unwrap();
        date.and_hms_opt(0, 0, 0).unwrap().and_utc()
    }

    #[test]
    fn the_end_is_read_in_both_forms() {
        for year in [2021, 2027, 2049, 2050, 2999] {
            let pem = certificate(year).pem();
            assert_eq!(soonest(pem.as_bytes()), Some(midnight(year)), "{year}");
        }
    }

    #[test]
    fn the_first_of_several_counts_and_what_is_none_has_no_end() {
        let pem = [2040, 2030, 2035].map(|year| certificate(year).pem());
        assert_eq!(soonest(pem.concat().as_bytes()), Some(midnight(2030)));
        let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in ["", "nonsense", hollow] {
            assert_eq!(soonest(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_certificate_that_is_cut_off_anywhere_or_changed_is_only_unreadable() {
        let certificate = certificate(2030);
        let der = certificate.der();
        for end in 0..der.len() {
            assert_eq!(not_after(&der[..end]), None, "{end}");
        }
        for position in 0..der.len() {
            let mut changed = der.to_vec();
            changed[position] = !changed[position];
            not_after(&changed);
        }
    }
}
