//! Marks of the keys that are current: a form that renews a key carries one, so that sending the form again, as by a
//! reload of its answer, renews nothing.

use sha2::{Digest, Sha256};

use crate::accounts::Accounts;
use mailgate_storage::apps::{self, StoredKeys};
use mailgate_storage::subscribers::Subscriber;
use mailgate_types::hex::hex;
use mailgate_types::ids::AppId;

/// A key that an app has exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppKey {
    /// The main send key.
    Send,
    /// The secret of `webhook_url`.
    Webhook,
    /// The pushable key.
    Pushable,
}

impl AppKey {
    pub(in crate::accounts) fn of(self, keys: &StoredKeys) -> &[u8] {
        match self {
            Self::Send => &keys.send_key_sealed,
            Self::Webhook => &keys.webhook_secret_sealed,
            Self::Pushable => keys.pushable_key.as_bytes(),
        }
    }
}

/// Identifies a key by its stored form: each secret is sealed with a fresh nonce.
fn mark(stored: &[u8]) -> String {
    // Not base64: no page may have a key's prefix, and that is one by chance.
    hex(&Sha256::digest(stored))
}

/// Whether a form was made for this key; one without a mark is for any.
pub(in crate::accounts) fn is_current(last: Option<&str>, stored: &[u8]) -> bool {
    last.is_none_or(|last| last == mark(stored))
}

impl Accounts {
    /// The mark of an app's current key; `None` if the app was deleted.
    pub async fn key_mark(&self, app: AppId, key: AppKey) -> Result<Option<String>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let keys = apps::stored_keys(&mut connection, app).await?;
        Ok(keys.map(|keys| mark(key.of(&keys))))
    }

    /// The mark of a subscriber's current API secret.
    #[must_use]
    pub fn api_secret_mark(subscriber: &Subscriber) -> String {
        mark(&subscriber.api_secret_sealed)
    }
}
