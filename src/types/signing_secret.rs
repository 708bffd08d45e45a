//! What a webhook configuration signs with: `whsec_` and base64, as Standard Webhooks has it, or a text
//! of the customer's own.

use std::fmt::{Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::secrets::{NoRandomness, random_bytes};

const PREFIX: &str = "whsec_";

/// Bytes of a new key.
const GENERATED: usize = 32;

/// Characters at each end that a truncated secret shows, a quarter of it at most.
const SHOWN: usize = 4;

/// A secret that can't be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSigningSecret {
    /// It begins as Standard Webhooks has it, and goes on otherwise. Taken as a text it would sign with
    /// another key than the one that its owner's library makes of it.
    #[error("must go on with base64 (padded) of 24 to 64 bytes when it begins with whsec_")]
    Encoded,
    /// Too short to be safe, or too long.
    #[error("must have 16 to 128 bytes, or be whsec_ and base64 of 24 to 64 bytes")]
    Length,
}

/// The secret of a webhook configuration.
#[derive(Clone)]
pub struct SigningSecret(SecretString);

impl SigningSecret {
    /// A new one: 32 random bytes.
    ///
    /// # Errors
    ///
    /// When the operating system has no randomness to give.
    pub fn generate() -> Result<Self, NoRandomness> {
        let key = Zeroizing::new(random_bytes::<GENERATED>()?);
        let text = format!("{PREFIX}{}", STANDARD.encode(key.as_slice()));
        Ok(Self(SecretString::from(text)))
    }

    /// One that a customer brings: `whsec_` and base64 of 24 to 64 bytes, or any other text of 16 to 128
    /// bytes, which is the key as it stands.
    ///
    /// # Errors
    ///
    /// [`InvalidSigningSecret`].
    pub fn parse(text: &str) -> Result<Self, InvalidSigningSecret> {
        if let Some(encoded) = text.strip_prefix(PREFIX) {
            let key = STANDARD.decode(encoded).map(Zeroizing::new);
            if !key.is_ok_and(|key| (24..=64).contains(&key.len())) {
                return Err(InvalidSigningSecret::Encoded);
            }
        } else if !(16..=128).contains(&text.len()) {
            return Err(InvalidSigningSecret::Length);
        }
        Ok(Self(SecretString::from(text)))
    }

    /// The secret in clear, for whoever it belongs to.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// As the signer takes it.
    #[must_use]
    pub fn text(&self) -> &SecretString {
        &self.0
    }

    /// Enough of it to tell it from others: its first and last 4 characters, behind the prefix.
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
    /// One that was stored, and so checked before.
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
        use InvalidSigningSecret as Invalid;
        for (text, expected) in [
            (encoded(23), Err(Invalid::Encoded)),
            (encoded(24), Ok(())),
            (encoded(64), Ok(())),
            (encoded(65), Err(Invalid::Encoded)),
            ("whsec_".to_owned(), Err(Invalid::Encoded)),
            (
                "whsec_not-base64-but-long-enough".to_owned(),
                Err(Invalid::Encoded),
            ),
            (
                encoded(32).trim_end_matches('=').to_owned(),
                Err(Invalid::Encoded),
            ),
            (format!("{} ", encoded(32)), Err(Invalid::Encoded)),
            (String::new(), Err(Invalid::Length)),
            ("x".repeat(15), Err(Invalid::Length)),
            ("x".repeat(16), Ok(())),
            ("é".repeat(8), Ok(())),
            ("x".repeat(128), Ok(())),
            ("x".repeat(129), Err(Invalid::Length)),
            ("WHSEC_is a text like any other".to_owned(), Ok(())),
        ] {
            let secret = SigningSecret::parse(&text);
            assert_eq!(
                secret.as_ref().map(|_| ()),
                expected.as_ref().copied(),
                "{text}"
            );
            if let Ok(secret) = secret {
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
