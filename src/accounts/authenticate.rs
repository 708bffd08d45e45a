//! Finds the app behind a send key.

use sha2::{Digest, Sha256};

use super::Accounts;
use crate::storage::subscribers::{self, Subscriber};
use mailgate_types::secrets::{ApiSecret, SendKey};

/// Why a caller is not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// There is no such key, or it belongs to another app.
    #[error("the key opens nothing")]
    Wrong,
    /// The database query failed.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

/// A presented key: enough to check it again later, without revealing it.
#[derive(Debug, Clone)]
pub struct PresentedKey {
    pub(super) digests: Vec<Vec<u8>>,
    /// SHA-256: the same whichever keys seal the database.
    pub(super) hash: Vec<u8>,
}

/// A digest of a secret that doesn't depend on the sealing keys. Secrets are random, so it can't be searched for.
pub(super) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

impl Accounts {
    /// Parses a presented send key; `None` if it can't be one.
    #[must_use]
    pub fn present(&self, send_key: &str) -> Option<PresentedKey> {
        SendKey::parse(send_key).map(|key| PresentedKey {
            digests: self.seal_keys.lookup_digests(key.expose()),
            hash: hash(key.expose()),
        })
    }

    /// Parses a presented API secret; `None` if it can't be one.
    #[must_use]
    pub fn present_api_secret(&self, api_secret: &str) -> Option<PresentedKey> {
        ApiSecret::parse(api_secret).map(|secret| PresentedKey {
            digests: self.seal_keys.lookup_digests(secret.expose()),
            hash: hash(secret.expose()),
        })
    }

    /// The subscriber that the secret currently authenticates.
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
