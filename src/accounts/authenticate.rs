//! Finds the app behind a send key.

use super::Accounts;
use crate::storage::subscribers::{self, Subscriber};
use mailgate_types::secrets::{ApiSecret, SendKey};

/// Why nobody is let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// No such key, or another app's.
    #[error("the key opens nothing")]
    Wrong,
    /// The database can't say.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

/// A key as somebody presented it: enough to ask again later, too little to show it.
#[derive(Debug, Clone)]
pub struct PresentedKey {
    pub(super) digests: Vec<Vec<u8>>,
}

impl Accounts {
    /// Takes what a caller presents as a send key; `None` when it can't be one.
    #[must_use]
    pub fn present(&self, send_key: &str) -> Option<PresentedKey> {
        SendKey::parse(send_key).map(|key| PresentedKey {
            digests: self.seal_keys.lookup_digests(key.expose()),
        })
    }

    /// Takes what a caller presents as an API secret; `None` when it can't be one.
    #[must_use]
    pub fn present_api_secret(&self, api_secret: &str) -> Option<PresentedKey> {
        ApiSecret::parse(api_secret).map(|secret| PresentedKey {
            digests: self.seal_keys.lookup_digests(secret.expose()),
        })
    }

    /// The subscriber that the secret opens at this moment.
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
