//! The validity period of certificates, read from their DER encoding (RFC 5280 §4.1) without any other check.

use chrono::{DateTime, NaiveDateTime, Utc};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// ASN.1 tags (X.690 §8).
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

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
    let mut signed = Elements(Elements(certificate).of(SEQUENCE)?);
    let mut fields = Elements(signed.of(SEQUENCE)?);
    if fields.0.first() == Some(&VERSION) {
        fields.next()?;
    }
    fields.of(INTEGER)?;
    // The algorithm and the issuer.
    fields.of(SEQUENCE)?;
    fields.of(SEQUENCE)?;
    let mut validity = Elements(fields.of(SEQUENCE)?);
    Some((moment(validity.next()?)?, moment(validity.next()?)?))
}

/// A time in a certificate: to the second, in UTC.
fn moment((tag, text): (u8, &[u8])) -> Option<DateTime<Utc>> {
    let text = std::str::from_utf8(text).ok()?;
    let text = match tag {
        // Years from 50 on are in the 20th century (RFC 5280 §4.1.2.5.1).
        UTC_TIME => {
            let year: u8 = text.get(..2)?.parse().ok()?;
            format!("{}{text}", if year < 50 { "20" } else { "19" })
        }
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let naive = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?;
    Some(naive.and_utc())
}

/// A sequence of DER elements.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The tag and the contents of the next element.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits
                    .iter()
                    .fold(0, |length, digit| length << 8 | usize::from(*digit));
                (length, rest)
            }
            _ => return None,
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, contents))
    }

    /// The contents of the next element, which must have this tag.
    fn of(&mut self, expected: u8) -> Option<&'a [u8]> {
        let (tag, contents) = self.next()?;
        (tag == expected).then_some(contents)
    }
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
