//! ID tokens signed with a provider's published keys (`OpenID` Connect Core §3.1.3.7; RFC 7515, 7517 and 7518).
//! Only signatures by a private key count: `none` and the HMACs, which a public key could produce, are rejected.

pub(super) mod claims;
pub(super) mod jwk;
pub(super) mod published_keys;
mod signature;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::OAuthError;
use super::response::{Fields, text};

/// An unverified token in three parts (RFC 7515 §7.1).
#[derive(Debug)]
pub(super) struct SignedToken<'a> {
    message: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    key_id: Option<String>,
    claims: Fields,
}

impl<'a> SignedToken<'a> {
    pub(super) fn parse(token: &'a str) -> Result<Self, OAuthError> {
        let parsed = || {
            let (message, signature) = token.rsplit_once('.')?;
            let (header, payload) = message.split_once('.')?;
            let json = |part| serde_json::from_slice::<Fields>(&decode(part)?).ok();
            let header = json(header)?;
            // Critical extensions (RFC 7515 §4.1.11): none is supported.
            if header.contains_key("crit") {
                return None;
            }
            Some(Self {
                message,
                signature: decode(signature)?,
                algorithm: text(&header, "alg")?.to_owned(),
                key_id: text(&header, "kid").map(str::to_owned),
                claims: json(payload)?,
            })
        };
        parsed().ok_or(OAuthError::Nonsense("the id token can't be read"))
    }
}

/// The claims of a JSON Web Token (RFC 7519 §3); the signature isn't checked.
pub(super) fn unverified_claims(token: &str) -> Option<Fields> {
    serde_json::from_slice(&decode(token.split('.').nth(1)?)?).ok()
}

/// Base64url without padding (RFC 7515 §2); some pad it.
fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}
