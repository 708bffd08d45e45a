//! When keys were last used: noted in memory and written once a minute, so that no message waits for it and no key is
//! written more often.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::accounts::Accounts;
use mailgate_storage::key_uses::{self, Uses};
use mailgate_types::ids::{ApiSecretId, AppId, SendKeyId};

/// The largest number of keys noted between two writes; further ones are noted after the next.
const MOST: usize = 100_000;

/// Keys per statement.
const BATCH: usize = 1_000;

/// A key that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::accounts) enum UsedKey {
    /// The main send key of an app.
    App(AppId),
    /// An additional send key.
    SendKey(SendKeyId),
    /// An additional API secret.
    ApiSecret(ApiSecretId),
}

/// Keys used since the last write.
#[derive(Debug, Default)]
pub(in crate::accounts) struct KeyUses {
    used: Mutex<HashMap<UsedKey, DateTime<Utc>>>,
}

impl KeyUses {
    fn used(&self) -> MutexGuard<'_, HashMap<UsedKey, DateTime<Utc>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a use of a key that is valid.
    pub(in crate::accounts) fn note(&self, key: UsedKey, now: DateTime<Utc>) {
        let mut used = self.used();
        if used.len() < MOST || used.contains_key(&key) {
            used.insert(key, now);
        }
    }

    fn take(&self) -> Vec<(UsedKey, DateTime<Utc>)> {
        std::mem::take(&mut *self.used()).into_iter().collect()
    }
}

impl Accounts {
    /// Writes when keys were last used. If that fails, these uses are lost; the next ones are noted again.
    pub async fn write_key_uses(&self) -> Result<(), sqlx::Error> {
        let noted = self.key_uses.take();
        for batch in noted.chunks(BATCH) {
            let (mut apps, mut send_keys) = (Uses::default(), Uses::default());
            let mut api_secrets = Uses::default();
            for (key, at) in batch {
                let (uses, id) = match key {
                    UsedKey::App(app) => (&mut apps, app.0),
                    UsedKey::SendKey(id) => (&mut send_keys, id.0),
                    UsedKey::ApiSecret(id) => (&mut api_secrets, id.0),
                };
                uses.ids.push(id);
                uses.at.push(*at);
            }
            let mut connection = self.pool.acquire().await?;
            key_uses::write_apps(&mut connection, &apps).await?;
            key_uses::write_send_keys(&mut connection, &send_keys).await?;
            key_uses::write_api_secrets(&mut connection, &api_secrets).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_noted_once() {
        let uses = KeyUses::default();
        let now = Utc::now();
        let key = UsedKey::SendKey(SendKeyId::at(now));
        for _ in 0..10 {
            uses.note(key, now);
        }
        assert_eq!(uses.take(), [(key, now)]);
        assert_eq!(uses.take(), []);
    }
}
