//! Idempotency-Key: a caller that lost an answer repeats the request under the same key, and gets the original answer
//! instead of a second message. The opening claims the key (`journal::write`); [`replay`] looks up one that is taken.

mod replay;
pub(crate) mod stored_answer;

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use crate::accounts::Caller;
use crate::sending::{SendError, Sending};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::idempotency_keys::{self, Known, NewKey};
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::past::Past;

/// Longest key in characters.
pub const KEY_LENGTH: usize = 255;

/// How long a key is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// Keys deleted per statement.
const FORGOTTEN: i64 = 1_000;

/// The separator between an additional send key and its name for a request; neither contains it.
const SEPARATOR: char = '\u{1f}';

/// A caller's name for a request, and a digest of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As the caller wrote it; for an additional send key, prefixed with that key's id.
    pub key: String,
    /// SHA-256 of the request: using the key for a different request is an error.
    pub request_digest: Vec<u8>,
    /// As the caller wrote it, if that differs: the form that the previous release stored for all keys of the app.
    of_app: Option<String>,
}

impl IdempotencyKey {
    /// The caller's own name: each send key has a separate namespace, so that none can use another's.
    #[must_use]
    pub(in crate::sending) fn of(self, caller: &Caller) -> Self {
        match caller.send_key() {
            None => self,
            Some(id) => Self {
                key: format!("{id}{SEPARATOR}{}", self.key),
                of_app: Some(self.key),
                ..self
            },
        }
    }

    /// Whether the previous release may have stored it under another name, which must be looked up first.
    fn may_be_of_app(&self) -> bool {
        self.of_app.is_some()
    }

    /// The key, as it is stored for a message.
    pub(in crate::sending) fn of_message(&self, app: AppId, log: LogId) -> NewKey {
        NewKey {
            app,
            key: self.key.clone(),
            request_digest: self.request_digest.clone(),
            log,
        }
    }

    /// A key, with a digest over the parts of the request.
    #[must_use]
    pub fn over<'a>(key: String, parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part);
        }
        Self {
            key,
            request_digest: digest.finalize().to_vec(),
            of_app: None,
        }
    }

    /// The name that it is stored under, and its stored data.
    async fn known(
        &self,
        connection: &mut PgConnection,
        app: AppId,
    ) -> Result<Option<(&str, Known)>, sqlx::Error> {
        if let Some(known) = idempotency_keys::find(connection, app, &self.key).await? {
            return Ok(Some((&self.key, known)));
        }
        let Some(name) = self.of_app.as_deref() else {
            return Ok(None);
        };
        let known = idempotency_keys::find_of_app(connection, app, name).await?;
        // With another request, it may belong to another send key.
        let same = known.filter(|known| known.request_digest == self.request_digest);
        Ok(same.map(|known| (name, known)))
    }
}

/// Parses a key: 1 to 255 visible ASCII characters or spaces between them.
#[must_use]
pub fn read_key(text: &str) -> Option<String> {
    let text = text.trim();
    let is_good = !text.is_empty()
        && text.chars().count() <= KEY_LENGTH
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_good.then(|| text.to_owned())
}

impl Sending {
    /// Whether no message has this key. Waits for a transaction that is about to give it to one.
    pub(in crate::sending) async fn is_free(
        &self,
        app: AppId,
        key: &IdempotencyKey,
    ) -> Result<bool, SendError> {
        let now = self.clock.now();
        let asked = async {
            let mut transaction = transaction::begin(&self.pool).await?;
            let key = key.of_message(app, LogId::at(now));
            let claimed = idempotency_keys::claim(&mut transaction, &[&key], now).await?;
            transaction.rollback().await?;
            Ok(!claimed.is_empty())
        };
        asked.await.map_err(|error: sqlx::Error| {
            trouble!(error, error, app_id = %app, "an idempotency key can't be looked up");
            SendError::NotTaken
        })
    }

    /// Whether this is a key's only name: it has another one while names of the previous release are left.
    pub(in crate::sending) fn is_name_certain(&self, key: &IdempotencyKey) -> bool {
        !key.may_be_of_app() || self.only_own_names.load(Ordering::Relaxed)
    }

    /// Deletes keys that are older than a day, and records whether any of the previous release is left.
    pub async fn forget_keys(&self) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock).before(KEPT);
        let mut connection = self.pool.acquire().await?;
        while idempotency_keys::forget(&mut connection, past, FORGOTTEN).await? > 0 {}
        let is_left = idempotency_keys::may_be_of_before(&mut connection).await?;
        self.only_own_names.store(!is_left, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for (text, expected) in [
            ("a", Some("a")),
            (" order 17 ", Some("order 17")),
            ("", None),
            ("  ", None),
            ("a\tb", None),
            ("é", None),
        ] {
            assert_eq!(read_key(text).as_deref(), expected, "{text:?}");
        }
        assert!(read_key(&"x".repeat(255)).is_some());
        assert!(read_key(&"x".repeat(256)).is_none());
    }
}
