//! The keys of apps and subscribers: `sk_`, `sek_`, `pk_` and `whs_`; and the portal's session and link tokens.

use std::fmt::{Debug, Formatter};

use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::{ExposeSecret, SecretString};

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Length of 32 bytes in base 62: `ceil(256 / log2(62))`.
const LENGTH: usize = 43;

/// The operating system provided no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no randomness")]
pub struct NoRandomness;

/// 32 bytes from the operating system.
///
/// # Errors
///
/// If the operating system provides none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0_u8; N];
    SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// A number of 256 bits in base 62, most significant digit first, with leading zeros.
fn base62(mut number: [u8; 32]) -> String {
    let mut digits = [0_u8; LENGTH];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = (remainder << 8) | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(0);
            remainder = value % 62;
        }
        *digit = BASE62[remainder as usize];
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

/// Whether `text` has the form of a key with this prefix, existing or not.
fn has_form(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| {
        rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

macro_rules! key {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(SecretString);

        impl $name {
            /// Generates a new one from 32 random bytes.
            ///
            /// # Errors
            ///
            /// If the operating system provides no randomness.
            pub fn generate() -> Result<Self, NoRandomness> {
                let text = format!(concat!($prefix, "{}"), base62(random_bytes()?));
                Ok(Self(SecretString::from(text)))
            }

            /// Parses a key that a caller presents; `None` if it doesn't have the form of one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                has_form($prefix, text).then(|| Self(SecretString::from(text)))
            }

            /// The key in plaintext, for its owner.
            #[must_use]
            pub fn expose(&self) -> &str {
                self.0.expose_secret()
            }
        }

        impl Debug for $name {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(concat!($prefix, "[masked]"))
            }
        }
    };
}

key!(
    /// The subscriber's API secret (`X-Api-Secret`).
    ApiSecret,
    "sk_"
);
key!(
    /// The app's key for sending: SMTP password and `X-Send-Key`.
    SendKey,
    "sek_"
);
key!(
    /// The app's public key in connect links and the REST API.
    PushableKey,
    "pk_"
);
key!(
    /// Signs the webhooks to the app's own `webhook_url`.
    WebhookSecret,
    "whs_"
);
key!(
    /// A portal session, in a cookie.
    SessionToken,
    "mgs_"
);
key!(
    /// The token of a one-time sign-in link to the portal.
    LinkToken,
    "mgl_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base62_of_known_numbers() {
        assert_eq!(base62([0; 32]), "0".repeat(LENGTH));
        let mut sixty_three = [0; 32];
        sixty_three[31] = 63;
        assert_eq!(base62(sixty_three), format!("{}11", "0".repeat(41)));
        // 2^256 - 1, calculated by another program.
        assert_eq!(
            base62([0xff; 32]),
            "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"
        );
    }

    #[test]
    fn a_key_has_its_form_and_hides() {
        let key = SendKey::generate().ok();
        let text = key
            .as_ref()
            .map(|key| key.expose().to_owned())
            .unwrap_or_default();
        assert!(SendKey::parse(&text).is_some());
        assert!(PushableKey::parse(&text).is_none());
        assert!(SendKey::parse(&text.to_uppercase()).is_none());
        assert_eq!(format!("{key:?}"), "Some(sek_[masked])");
    }
}
