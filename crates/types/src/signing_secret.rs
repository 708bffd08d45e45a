//! The signing secret of a webhook configuration: `whsec_` and base64, as in Standard Webhooks, or any string chosen by
//! the customer.

use std::fmt::{Debug, Formatter};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::secrets::{NoRandomness, random_bytes};
use crate::words::words;

const PREFIX: &str = "whsec_";

/// Length of a new key, in bytes.
const GENERATED: usize = 32;

/// Characters shown at each end of a truncated secret, at most a quarter of it.
const SHOWN: usize = 4;

/// How long a replaced secret still signs alongside the new one.
pub const OVERLAP: Duration = Duration::from_hours(24);

/// Why a secret is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSigningSecret {
    /// Too short to be safe, or too long.
    #[error("must have 16 to 128 bytes, not counting whsec_ in front")]
    Length,
}

words! {
    /// How the key is derived from the secret.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SecretEncoding {
        /// `whsec_` and base64 of 24 to 64 bytes, which are the key.
        Base64 = "base64",
        /// Any other string: its bytes, prefix included, are the key.
        Raw = "raw",
    }
}

/// The key in a secret in Standard Webhooks' form; `None` for any other string, whose bytes are the key.
#[must_use]
pub fn encoded_key(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let key = STANDARD.decode(text.strip_prefix(PREFIX)?).ok();
    key.map(Zeroizing::new)
        .filter(|key| (24..=64).contains(&key.len()))
}

/// The secret of a webhook configuration.
#[derive(Clone)]
pub struct SigningSecret(SecretString);

impl SigningSecret {
    /// Generates a new one from 32 random bytes.
    ///
    /// # Errors
    ///
    /// If the operating system provides no randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let key = Zeroizing::new(random_bytes::<GENERATED>()?);
        let text = format!("{PREFIX}{}", STANDARD.encode(key.as_slice()));
        Ok(Self(SecretString::from(text)))
    }

    /// Parses a customer's own secret: `whsec_` and base64 of 24 to 64 bytes, or any other text of 16 to 128 bytes, not
    /// counting a `whsec_` in front, which is used as the key unchanged.
    pub fn parse(text: &str) -> Result<Self, InvalidSigningSecret> {
        let rest = text.strip_prefix(PREFIX).unwrap_or(text);
        if (16..=128).contains(&rest.len()) {
            Ok(Self(SecretString::from(text)))
        } else {
            Err(InvalidSigningSecret::Length)
        }
    }

    /// How its key is derived.
    #[must_use]
    pub fn encoding(&self) -> SecretEncoding {
        match encoded_key(self.expose()) {
            Some(_) => SecretEncoding::Base64,
            None => SecretEncoding::Raw,
        }
    }

    /// The secret in plaintext, for its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The secret in the signer's form.
    #[must_use]
    pub fn text(&self) -> &SecretString {
        &self.0
    }

    /// Enough to distinguish it from others: its first and last 4 characters, after the prefix.
    #[must_use]
    pub fn truncated(&self) -> String {
        let text = self.expose();
        let (prefix, rest) = match text.strip_prefix(PREFIX) {
            Some(rest) => (PREFIX, rest),
            None => ("", text),
        };
        let length = rest.chars().count();
        let shown = SHOWN.min(length / 4);
        let first: String = rest.chars().take(shown).collect();
        let last: String = rest.chars().skip(length - shown).collect();
        format!("{prefix}{first}…{last}")
    }
}

impl From<SecretString> for SigningSecret {
    /// A stored secret, which has been validated before.
    fn from(stored: SecretString) -> Self {
        Self(stored)
    }
}

impl Debug for SigningSecret {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("whsec_[masked]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: usize) -> String {
        format!("whsec_{}", STANDARD.encode(vec![7; bytes]))
    }

    #[test]
    fn both_forms_within_their_bounds() {
        use SecretEncoding::{Base64, Raw};
        for (text, expected) in [
            (encoded(23), Some(Raw)),
            (encoded(24), Some(Base64)),
            (encoded(64), Some(Base64)),
            (encoded(65), Some(Raw)),
            ("whsec_".to_owned(), None),
            (format!("whsec_{}", "x".repeat(15)), None),
            (format!("whsec_{}", "-".repeat(16)), Some(Raw)),
            ("whsec_not-base64-but-long-enough".to_owned(), Some(Raw)),
            (encoded(32).trim_end_matches('=').to_owned(), Some(Raw)),
            (format!("{} ", encoded(32)), Some(Raw)),
            (format!("whsec_{}", "x".repeat(128)), Some(Raw)),
            (format!("whsec_{}", "x".repeat(129)), None),
            (String::new(), None),
            ("x".repeat(15), None),
            ("x".repeat(16), Some(Raw)),
            ("é".repeat(8), Some(Raw)),
            ("x".repeat(128), Some(Raw)),
            ("x".repeat(129), None),
            ("WHSEC_is a text like any other".to_owned(), Some(Raw)),
        ] {
            let secret = SigningSecret::parse(&text).ok();
            let encoding = secret.as_ref().map(SigningSecret::encoding);
            assert_eq!(encoding, expected, "{text}");
            if let Some(secret) = secret {
                assert_eq!(secret.expose(), text);
            }
        }
    }

    #[test]
    fn a_new_one_is_of_the_standard_form_and_hides() {
        let secret = SigningSecret::generate().ok();
        let text = secret
            .as_ref()
            .map(SigningSecret::expose)
            .unwrap_or_default();
        assert_eq!(text.len(), "whsec_".len() + 44);
        assert!(SigningSecret::parse(text).is_ok());
        assert_eq!(format!("{secret:?}"), "Some(whsec_[masked])");
    }

    #[test]
    fn truncated_it_shows_eight_characters_at_most() {
        for (text, shown) in [
            ("whsec_abcdefghijklmnopqrstuvwxyz012345", "whsec_abcd…2345"),
            ("correct horse battery", "corr…tery"),
            ("1234567890abcdef", "1234…cdef"),
            ("ééééüüüü", "éé…üü"),
            ("🐎🐎🐎🐎", "🐎…🐎"),
        ] {
            let secret = SigningSecret::parse(text).map(|secret| secret.truncated());
            assert_eq!(secret.as_deref(), Ok(shown));
        }
    }
}
