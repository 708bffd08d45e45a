//! The claims of an ID token: whether it belongs to this client and this authorization, and is valid now.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::OAuthError;
use super::super::response::{Fields, text};
use super::SignedToken;

/// The tolerated difference from the provider's clock.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// The expected claims of an ID token.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: DateTime<Utc>,
}

/// The nonce of an authorization request, which binds its ID token. It is derived from the code verifier, which is kept
/// as long and is as secret.
pub(in crate::mail::oauth) fn nonce(code_verifier: &str) -> String {
    let digest = Sha256::new()
        .chain_update("nonce of ")
        .chain_update(code_verifier);
    URL_SAFE_NO_PAD.encode(digest.finalize())
}

impl SignedToken<'_> {
    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), OAuthError> {
        let claims = &self.claims;
        let says = |name, value: &str| text(claims, name) == Some(value);
        // Seconds, perhaps with a fraction (RFC 7519 §2).
        let moment = |name| {
            let seconds = claims.get(name).and_then(Value::as_f64)?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a float that is too large stops at the end"
            )]
            let seconds = seconds as i64;
            DateTime::from_timestamp(seconds, 0)
        };
        let now = expected.now;
        let problem = if !says("iss", expected.issuer) {
            "the id token is of another issuer"
        } else if !is_for(claims, expected.client_id)
            || text(claims, "azp").is_some_and(|client| client != expected.client_id)
        {
            "the id token is for another client"
        } else if !says("nonce", expected.nonce) {
            "the id token is of another sign-in"
        } else if moment("exp").is_none_or(|end| end <= now - SKEW) {
            "the id token has expired"
        } else if ["nbf", "iat"]
            .into_iter()
            .filter_map(moment)
            .any(|begin| begin > now + SKEW)
        {
            "the id token isn't valid yet"
        } else {
            return Ok(());
        };
        Err(OAuthError::Nonsense(problem))
    }
}

/// Whether a token is for this client, alone or among others.
pub(in crate::mail::oauth) fn is_for(claims: &Fields, client_id: &str) -> bool {
    let is_it = |value: &Value| value.as_str() == Some(client_id);
    match claims.get("aud") {
        Some(Value::Array(clients)) => clients.iter().any(is_it),
        Some(client) => is_it(client),
        None => false,
    }
}
