//! Parses presented keys, and finds the subscriber behind an API secret.

pub(crate) mod caller;
pub(crate) mod hold_back;
pub(crate) mod places;
pub(crate) mod rate;
pub(crate) mod sessions;
pub(crate) mod slow_down;

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::Accounts;
use super::keys::uses::UsedKey;
use mailgate_storage::api_secrets::{self, Opened};
use mailgate_storage::send_keys::Lookup;
use mailgate_storage::subscribers::{self, Subscriber};
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{ApiSecret, SendKey};

/// Why a caller is not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// There is no such key, it belongs to another app, it has expired, or it may not be used from this address.
    #[error("invalid key")]
    Wrong,
    /// The database query failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// A presented key: enough to check it again later, without revealing it.
#[derive(Debug, Clone)]
pub struct PresentedKey {
    pub(super) digests: Vec<Vec<u8>>,
    /// SHA-256: the same whichever keys seal the database.
    pub(super) hash: Vec<u8>,
    /// The client's address; `None` if a proxy doesn't report it.
    pub(super) address: Option<IpAddr>,
}

/// Why an existing key is refused: only for the log, since the client gets the response to an invalid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// The client's address isn't allowed.
    #[error("it may not be used from this address")]
    Address,
}

/// Whether a key has expired.
pub(super) fn has_expired(expires_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

/// The lookup value of additional keys: the digits of their hash. The key itself isn't stored.
fn hash_digits(hash: &[u8]) -> String {
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// A digest of a secret that doesn't depend on the sealing keys. Secrets are random, so it can't be searched for.
pub(super) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

impl Accounts {
    /// Parses a presented send key; `None` if it can't be one.
    #[must_use]
    pub fn present(&self, send_key: &str, address: Option<IpAddr>) -> Option<PresentedKey> {
        SendKey::parse(send_key).map(|key| self.presented(key.expose(), address))
    }

    /// Parses a presented API secret; `None` if it can't be one.
    #[must_use]
    pub fn present_api_secret(
        &self,
        api_secret: &str,
        address: Option<IpAddr>,
    ) -> Option<PresentedKey> {
        ApiSecret::parse(api_secret).map(|secret| self.presented(secret.expose(), address))
    }

    fn presented(&self, secret: &str, address: Option<IpAddr>) -> PresentedKey {
        let hash = hash(secret);
        // As a main key, and as an additional one.
        let mut digests = self.seal_keys.lookup_digests(secret);
        digests.extend(self.additional_digests(&hash));
        PresentedKey {
            digests,
            hash,
            address,
        }
    }

    /// The lookup value of a new additional key; `context` is the one that its hash is sealed for.
    pub(super) fn additional_lookup(
        &self,
        secret: &str,
        context: &str,
    ) -> Result<Lookup, SealError> {
        let digits = hash_digits(&hash(secret));
        Ok(Lookup {
            hash_sealed: self.seal_keys.seal(context, &digits)?,
            digest: self.seal_keys.lookup_digest(&digits),
        })
    }

    /// The possible lookup digests of an additional key with this hash.
    pub(super) fn additional_digests(&self, hash: &[u8]) -> Vec<Vec<u8>> {
        self.seal_keys.lookup_digests(&hash_digits(hash))
    }

    /// What an API secret, main or additional, currently authenticates.
    pub async fn open_by_api_secret(
        &self,
        presented: &PresentedKey,
    ) -> Result<Opened, AuthenticateError> {
        let opened = {
            let mut connection = self.pool.acquire().await?;
            api_secrets::find(&mut connection, &presented.digests).await?
        };
        let opened = opened.ok_or(AuthenticateError::Wrong)?;
        if let Some(secret) = &opened.secret {
            let now = self.clock.now();
            if has_expired(secret.expires_at, now) {
                tracing::info!(
                    subscriber_id = %opened.subscriber.id,
                    api_secret_id = %secret.id,
                    reason = %Unusable::Expired,
                    "an API secret was refused"
                );
                return Err(AuthenticateError::Wrong);
            }
            self.key_uses.note(UsedKey::ApiSecret(secret.id), now);
        }
        Ok(opened)
    }

    /// The subscriber that the secret currently authenticates, if it is the main one: an additional one does not sign
    /// in to the portal.
    pub async fn subscriber_by_api_secret(
        &self,
        secret: &PresentedKey,
    ) -> Result<Subscriber, AuthenticateError> {
        let mut connection = self.pool.acquire().await?;
        subscribers::find_by_api_secret(&mut connection, &secret.digests)
            .await?
            .ok_or(AuthenticateError::Wrong)
    }
}
