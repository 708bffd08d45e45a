//! Finds the app behind a send key.

use super::Accounts;
use crate::storage::apps::{self, SendingApp};
use crate::types::secrets::SendKey;

/// Why nobody is let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// No such key, or another app's.
    #[error("the send key opens no such app")]
    Wrong,
    /// The database can't say.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

/// A send key as somebody presented it: enough to ask again later, too little to show it.
#[derive(Debug, Clone)]
pub struct PresentedKey {
    digests: Vec<Vec<u8>>,
}

impl Accounts {
    /// Takes what a caller presents as a send key; `None` when it can't be one.
    #[must_use]
    pub fn present(&self, send_key: &str) -> Option<PresentedKey> {
        SendKey::parse(send_key).map(|key| PresentedKey {
            digests: self.seal_keys.lookup_digests(key.expose()),
        })
    }

    /// The app that the key opens at this moment, with its subscriber's status: a key that was
    /// renewed or whose app was deleted since opens nothing.
    ///
    /// # Errors
    ///
    /// [`AuthenticateError`].
    pub async fn app_by_send_key(
        &self,
        key: &PresentedKey,
    ) -> Result<SendingApp, AuthenticateError> {
        let mut connection = self.pool.acquire().await?;
        apps::find_by_send_key(&mut connection, &key.digests)
            .await?
            .ok_or(AuthenticateError::Wrong)
    }
}
