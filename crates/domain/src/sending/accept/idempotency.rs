//! Idempotency-Key: a caller that lost an answer repeats the request under the same key, and gets the original answer
//! instead of a second message.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use crate::accounts::Caller;
use crate::sending::outcome::{Answer, Outcome, Receipt};
use crate::sending::{SendError, Sending};
use mailgate_providers::mail::verdict::Failure;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::idempotency_keys::{self, Known, NewKey};
use mailgate_storage::{email_logs, gateways};
use mailgate_types::ids::{AppId, CredentialId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::past::Past;
use mailgate_types::plugin::Plugin;

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

/// The form in which an outcome is stored under a key. The previous release reads it too, and doesn't know scheduled
/// messages: it treats them as waiting for an attempt.
pub(in crate::sending) fn stored(outcome: &Outcome) -> Value {
    // Only strings and numbers: serialization can't fail.
    let written = |outcome: &Outcome| serde_json::to_value(outcome).unwrap_or_default();
    let Outcome::Scheduled { receipt, send_at } = outcome else {
        return written(outcome);
    };
    let mut value = written(&Outcome::Queued {
        receipt: receipt.clone(),
        failure: Failure::own("It is scheduled"),
        retry_count: 0,
        next_retry_at: *send_at,
    });
    value[SCHEDULED] = Value::Bool(true);
    value
}

/// Marks the stored outcome of a scheduled message.
const SCHEDULED: &str = "scheduled";

/// Reads an outcome that [`stored`] has written, in this release or an earlier one.
fn read(stored: Value) -> Result<Outcome, serde_json::Error> {
    let is_scheduled = stored.get(SCHEDULED).is_some();
    Ok(match serde_json::from_value(stored)? {
        Outcome::Queued {
            receipt,
            next_retry_at: send_at,
            ..
        } if is_scheduled => Outcome::Scheduled { receipt, send_at },
        outcome => outcome,
    })
}

impl Sending {
    /// The outcome of the key's message; `None` if the key is free.
    pub(in crate::sending) async fn answer_to(
        &self,
        app: AppId,
        key: &IdempotencyKey,
    ) -> Result<Option<Answer>, SendError> {
        let unreadable = |error: sqlx::Error| {
            trouble!(error, error, app_id = %app, "an idempotency key can't be looked up");
            SendError::NotTaken
        };
        let mut connection = self.pool.acquire().await.map_err(unreadable)?;
        let known = key.known(&mut connection, app).await.map_err(unreadable)?;
        let Some((name, known)) = known else {
            return Ok(None);
        };
        if known.request_digest != key.request_digest {
            return Err(SendError::KeyOfAnother);
        }
        let outcome = match known {
            Known {
                answer: Some(answer),
                log,
                ..
            } => {
                let is_bound = idempotency_keys::is_bound(&answer);
                let outcome = read(answer).map_err(|_| {
                    tracing::error!(log_id = %log, "a stored answer can't be read");
                    SendError::Unknown
                });
                // The process that stored the message may have lost the commit's response, and be about to withdraw it.
                let is_waiting = matches!(
                    outcome,
                    Ok(Outcome::Queued { .. } | Outcome::Scheduled { .. })
                );
                let may_go = is_waiting && !is_bound;
                if may_go && !self.bind(&mut connection, app, name, log).await? {
                    return Ok(None);
                }
                outcome
            }
            Known { in_spool: true, .. } => Err(SendError::InFlight),
            // Its process died before it answered; the log has the outcome.
            Known { log, .. } => email_logs::ending(&mut connection, log)
                .await
                .map_err(unreadable)?
                .and_then(|ending| outcome_of(log, ending))
                .ok_or(SendError::InFlight),
        };
        outcome.map(|outcome| {
            Some(Answer {
                outcome,
                replayed: true,
            })
        })
    }

    /// The mailbox of a message; `None` if the message is no longer in the log.
    pub(in crate::sending) async fn mailbox_of(
        &self,
        log: LogId,
    ) -> Result<Option<CredentialId>, SendError> {
        let asked = async {
            let mut connection = self.pool.acquire().await?;
            email_logs::mailbox(&mut connection, log).await
        };
        asked.await.map_err(|error: sqlx::Error| {
            trouble!(error, error, log_id = %log, "the mailbox of a message can't be looked up");
            SendError::NotTaken
        })
    }

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

    /// Commits to an answer that is about to be given; `false` if its message was withdrawn. If that is unknown, the
    /// answer is only that the message is in progress, since it may still be sent.
    async fn bind(
        &self,
        connection: &mut PgConnection,
        app: AppId,
        name: &str,
        log: LogId,
    ) -> Result<bool, SendError> {
        let id = self.lease.id();
        let bound = async {
            Ok(
                if idempotency_keys::bind(connection, id, app, name, log).await? {
                    Some(true)
                } else if gateways::is_living(connection, id).await? {
                    Some(false)
                } else {
                    None
                },
            )
        };
        bound
            .await
            .unwrap_or_else(|error: sqlx::Error| {
                trouble!(error, error, app_id = %app, "an idempotency key can't be bound to its answer");
                None
            })
            .ok_or(SendError::InFlight)
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

fn outcome_of(log: LogId, ending: email_logs::LoggedOutcome) -> Option<Outcome> {
    let plugin: Plugin = ending.plugin.parse().ok()?;
    let receipt = Receipt {
        id: log,
        from: ending.from_address,
        plugin,
        message_id: ending.message_id,
    };
    if ending.status == LogStatus::Sent.as_str() {
        return Some(Outcome::Sent { receipt });
    }
    Some(Outcome::Rejected {
        receipt,
        failure: Failure::own(ending.error_message.unwrap_or_default()),
        may_have_arrived: true,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use chrono::DateTime;
    use serde_json::json;

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

    #[test]
    fn outcomes_come_back_as_they_were() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let receipt = Receipt {
            id: LogId::at(now),
            from: "ada@example.com".to_owned(),
            plugin: Plugin::B,
            message_id: Some("<m@example.com>".to_owned()),
        };
        let failure = Failure {
            code: Some(451),
            text: "4.7.1 later".to_owned(),
        };
        for outcome in [
            Outcome::Sent {
                receipt: receipt.clone(),
            },
            Outcome::Queued {
                receipt: receipt.clone(),
                failure: failure.clone(),
                retry_count: 1,
                next_retry_at: now,
            },
            Outcome::Scheduled {
                receipt: receipt.clone(),
                send_at: now,
            },
            Outcome::Rejected {
                receipt,
                failure,
                may_have_arrived: false,
            },
        ] {
            let mut bound = stored(&outcome);
            assert!(!idempotency_keys::is_bound(&bound));
            bound["bound"] = Value::Bool(true);
            assert!(idempotency_keys::is_bound(&bound));
            assert_eq!(read(bound).unwrap(), outcome);
        }
        assert!(read(Value::Null).is_err());
    }

    #[test]
    fn the_last_release_reads_a_scheduled_message_as_a_waiting_one() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let receipt = Receipt {
            id: LogId::at(now),
            from: "ada@example.com".to_owned(),
            plugin: Plugin::A,
            message_id: None,
        };
        let scheduled = Outcome::Scheduled {
            receipt: receipt.clone(),
            send_at: now,
        };
        let as_before: Outcome = serde_json::from_value(stored(&scheduled)).unwrap();
        let Outcome::Queued {
            receipt: read,
            next_retry_at,
            ..
        } = as_before
        else {
            panic!("{as_before:?}");
        };
        assert_eq!((read, next_retry_at), (receipt, now));
    }

    #[test]
    fn what_earlier_releases_have_stored_is_read() {
        let id = LogId::at(DateTime::from_timestamp(1_700_000_000, 0).unwrap()).to_string();
        let receipt = json!({ "id": id, "from": "ada@example.com", "plugin": "plugin_b", "message_id": null });
        let failure = json!({ "code": null, "text": "later" });
        for written in [
            json!({ "outcome": "sent", "receipt": receipt }),
            json!({ "outcome": "queued", "receipt": receipt, "failure": failure, "retry_count": 1,
                    "next_retry_at": "2023-11-14T22:13:20Z" }),
            json!({ "outcome": "rejected", "receipt": receipt, "failure": failure, "may_have_arrived": true }),
        ] {
            let outcome = read(written.clone()).unwrap();
            assert_eq!(stored(&outcome), written);
        }
    }
}
