//! Signs webhooks as specified by Standard Webhooks (version 1.0.0): HMAC-SHA256 over id, time and body, once for each
//! secret that is valid.

use std::fmt::{Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use mailgate_storage::signing_secrets::SealedSecrets;
use mailgate_types::ids::WebhookMessageId;
use mailgate_types::seal::SealKeys;
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
    /// Uses the bytes that [`encoded_key`] finds, or else, as with an app's `whs_…`, those of the string itself.
    pub(super) fn new(secret: &SecretString) -> Option<Self> {
        let text = secret.expose_secret();
        let decoded = encoded_key(text);
        let key = decoded.as_deref().map_or(text.as_bytes(), Vec::as_slice);
        Hmac::new_from_slice(key).ok().map(Self)
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The keys of an endpoint.
#[derive(Debug, Clone)]
pub(super) struct SigningKeys {
    current: SigningKey,
    /// The previous one, and when it expires.
    previous: Option<(SigningKey, DateTime<Utc>)>,
}

impl SigningKeys {
    /// A single key.
    pub(super) fn new(secret: &SecretString) -> Option<Self> {
        Some(Self {
            current: SigningKey::new(secret)?,
            previous: None,
        })
    }

    /// The keys in an endpoint's secrets; `None` if the current one can't be used.
    pub(super) fn unseal(
        seal_keys: &SealKeys,
        context: &str,
        secrets: &SealedSecrets,
    ) -> Option<Self> {
        let unseal = |sealed: &[u8]| match seal_keys.unseal(context, sealed) {
            Ok(secret) => SigningKey::new(&secret),
            Err(error) => {
                tracing::error!(%error, context, "a webhook secret can't be unsealed");
                None
            }
        };
        let previous = secrets.previous.as_ref();
        Some(Self {
            current: unseal(&secrets.current)?,
            previous: previous
                .and_then(|(sealed, expires_at)| Some((unseal(sealed)?, *expires_at))),
        })
    }

    /// The three headers of an attempt made at `now`: signed with every key that is valid then, the newest first.
    pub(super) fn headers(
        &self,
        id: WebhookMessageId,
        now: DateTime<Utc>,
        body: &Bytes,
    ) -> [(HeaderName, HeaderValue); 3] {
        let (id, timestamp) = (id.to_string(), now.timestamp().to_string());
        let mut signature = self.current.sign(&id, &timestamp, body);
        if let Some((previous, expires_at)) = &self.previous
            && now < *expires_at
        {
            signature.push(' ');
            signature.push_str(&previous.sign(&id, &timestamp, body));
        }
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
}
