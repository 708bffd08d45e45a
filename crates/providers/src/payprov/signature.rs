//! Verifies that an event comes from the provider: Stripe's `t=…,v1=…` over the raw body.

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Maximum difference between an event's timestamp and our clock, in seconds.
const TOLERANCE: u64 = 300;

/// Maximum signatures that are checked: there are two while a secret is being rotated.
const MOST_SIGNATURES: usize = 16;

/// The event isn't the provider's, or it is a replay of an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// No header, or not in the form `t=…,v1=…`.
    #[error("the event has no signature of the form t=…,v1=…")]
    Form,
    /// Signed too long ago, or by a clock that is ahead.
    #[error("the event's timestamp is too far from the current time")]
    Time,
    /// Signed with another secret, or over another body.
    #[error("the event is signed with another secret, or was changed in transit")]
    Mismatch,
}

/// The parsed header.
#[derive(Debug)]
pub struct Signature<'a> {
    timestamp: &'a str,
    digests: Vec<[u8; 32]>,
}

impl<'a> Signature<'a> {
    /// Parses a header and checks its timestamp: everything that can be checked without the body.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Form`] and [`SignatureError::Time`].
    pub fn read(header: Option<&'a str>, now: DateTime<Utc>) -> Result<Self, SignatureError> {
        let header = header.ok_or(SignatureError::Form)?;
        let mut timestamp = None;
        let mut digests = Vec::new();
        for part in header.split(',') {
            match part.trim().split_once('=') {
                Some(("t", value)) => timestamp = Some(value),
                // A `v1` that isn't a digest matches nothing; other schemes are ignored.
                Some(("v1", value)) if digests.len() < MOST_SIGNATURES => {
                    digests.extend(digest(value));
                }
                _ => {}
            }
        }
        let timestamp = timestamp.ok_or(SignatureError::Form)?;
        let signed_at: i64 = timestamp.parse().map_err(|_| SignatureError::Form)?;
        if digests.is_empty() {
            return Err(SignatureError::Form);
        }
        if now.timestamp().abs_diff(signed_at) > TOLERANCE {
            return Err(SignatureError::Time);
        }
        Ok(Self { timestamp, digests })
    }

    /// Verifies the signature over `body`.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Mismatch`].
    pub fn verify(&self, secret: &SecretString, body: &[u8]) -> Result<(), SignatureError> {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
            .map_err(|_| SignatureError::Mismatch)?;
        mac.update(self.timestamp.as_bytes());
        mac.update(b".");
        mac.update(body);
        // Each compared in constant time.
        if self
            .digests
            .iter()
            .any(|digest| mac.clone().verify_slice(digest).is_ok())
        {
            Ok(())
        } else {
            Err(SignatureError::Mismatch)
        }
    }
}

/// 32 bytes in hexadecimal.
fn digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        let value = digit(pair[0])? * 16 + digit(pair[1])?;
        *byte = u8::try_from(value).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Made with `printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test`.
    const SIGNATURE: &str = "c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925";
    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    const SIGNED_AT: i64 = 1_700_000_000;

    fn check(
        header: Option<&str>,
        body: &[u8],
        at: i64,
        secret: &str,
    ) -> Result<(), SignatureError> {
        let now = DateTime::from_timestamp(at, 0).unwrap_or_default();
        Signature::read(header, now)?.verify(&SecretString::from(secret), body)
    }

    #[test]
    fn what_openssl_signed_is_good() {
        let header = format!("t=1700000000,v1={SIGNATURE}");
        let good = |header: &str, at| check(Some(header), BODY, at, "whsec_test");
        assert_eq!(good(&header, SIGNED_AT), Ok(()));
        let renewed = format!("t=1700000000, v1={}, v1={SIGNATURE},v0=x", "0".repeat(64));
        assert_eq!(good(&renewed, SIGNED_AT), Ok(()));
        assert_eq!(
            good(
                &header
                    .to_uppercase()
                    .replace("T=", "t=")
                    .replace("V1", "v1"),
                SIGNED_AT
            ),
            Ok(())
        );
        for (seconds, expected) in [
            (300, Ok(())),
            (301, Err(SignatureError::Time)),
            (-300, Ok(())),
            (-301, Err(SignatureError::Time)),
        ] {
            assert_eq!(good(&header, SIGNED_AT + seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        let header = format!("t=1700000000,v1={SIGNATURE}");
        let check = |header: Option<&str>, body: &[u8], secret: &str| {
            check(header, body, SIGNED_AT, secret)
        };
        let mismatch = Err(SignatureError::Mismatch);
        assert_eq!(
            check(Some(&header), b"{\"id\":\"evt_2\"}", "whsec_test"),
            mismatch
        );
        assert_eq!(check(Some(&header), BODY, "whsec_other"), mismatch);
        let later = format!("t=1700000001,v1={SIGNATURE}");
        assert_eq!(check(Some(&later), BODY, "whsec_test"), mismatch);
        for form in [
            None,
            Some(""),
            Some("t=1700000000"),
            Some("v1=00"),
            Some("t=1700000000,v1=zz"),
            Some(&format!("t=soon,v1={SIGNATURE}")),
            Some(&format!("t=1700000000,v0={SIGNATURE}")),
        ] {
            assert_eq!(
                check(form, BODY, "whsec_test"),
                Err(SignatureError::Form),
                "{form:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_header_ends_the_process(header in ".{0,200}") {
            let _ = check(Some(&header), BODY, SIGNED_AT, "whsec_test");
        }

        #[test]
        fn every_changed_byte_is_seen(place in 0..BODY.len(), change in 1..=255_u8) {
            let mut body = BODY.to_vec();
            body[place] ^= change;
            let header = format!("t=1700000000,v1={SIGNATURE}");
            prop_assert_eq!(
                check(Some(&header), &body, SIGNED_AT, "whsec_test"),
                Err(SignatureError::Mismatch)
            );
        }
    }
}
