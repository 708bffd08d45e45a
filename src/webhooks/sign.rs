//! Signs webhooks as specified by Standard Webhooks (version 1.0.0): HMAC-SHA256 over id, time and body.

use std::fmt::{Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use mailgate_types::ids::WebhookMessageId;
use mailgate_types::signing_secret::encoded_key;

/// A secret, ready to sign.
#[derive(Clone)]
pub(super) struct SigningKey(Hmac<Sha256>);

impl Debug for SigningKey {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[masked]")
    }
}

impl SigningKey {
    /// Uses the bytes that [`encoded_key`] finds, or else, as with an app's `whs_…`, those of the text itself.
    pub(super) fn new(secret: &SecretString) -> Option<Self> {
        let text = secret.expose_secret();
        let decoded = encoded_key(text);
        let key = decoded.as_deref().map_or(text.as_bytes(), Vec::as_slice);
        Hmac::new_from_slice(key).ok().map(Self)
    }

    /// The three headers of an attempt made at `timestamp` (seconds since 1970).
    pub(super) fn headers(
        &self,
        id: WebhookMessageId,
        timestamp: i64,
        body: &Bytes,
    ) -> [(HeaderName, HeaderValue); 3] {
        let (id, timestamp) = (id.to_string(), timestamp.to_string());
        let signature = self.sign(&id, &timestamp, body);
        [
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signature),
        ]
        .map(|(name, value)| {
            let value = HeaderValue::try_from(value);
            // Letters, digits and base64 symbols are always valid.
            let value = value.unwrap_or_else(|_| HeaderValue::from_static(""));
            (HeaderName::from_static(name), value)
        })
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}
