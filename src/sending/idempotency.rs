//! Idempotency-Key: a caller that lost an answer asks again under the same key, and gets the answer
//! that there was, not a second message.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::outcome::{Answer, Outcome, Receipt};
use super::{SendError, Sending};
use crate::providers::mail::verdict::Failure;
use crate::storage::idempotency_keys::{self, Known};
use crate::storage::outage::trouble;
use crate::storage::{email_logs, gateways};
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Longest key in characters.
pub const KEY_LENGTH: usize = 255;

/// How long a key is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// Keys that are forgotten together.
const FORGOTTEN: i64 = 1_000;

/// What a caller calls a request, and what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As the caller wrote it.
    pub key: String,
    /// SHA-256 of the request: the same key with another one is a mistake.
    pub request_digest: Vec<u8>,
}

impl IdempotencyKey {
    /// A key with the parts of what is asked for under it.
    #[must_use]
    pub fn over<'a>(key: String, parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part);
        }
        Self {
            key,
            request_digest: digest.finalize().to_vec(),
        }
    }
}

/// Reads a key: 1 to 255 visible ASCII characters or spaces between them.
#[must_use]
pub fn read_key(text: &str) -> Option<String> {
    let text = text.trim();
    let is_good = !text.is_empty()
        && text.chars().count() <= KEY_LENGTH
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_good.then(|| text.to_owned())
}

/// An outcome as it lies under its key.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
enum Stored {
    Sent {
        receipt: StoredReceipt,
    },
    Queued {
        receipt: StoredReceipt,
        failure: StoredFailure,
        retry_count: i32,
        next_retry_at: DateTime<Utc>,
    },
    Rejected {
        receipt: StoredReceipt,
        failure: StoredFailure,
        may_have_arrived: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredReceipt {
    id: String,
    from: String,
    plugin: String,
    message_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredFailure {
    code: Option<u16>,
    text: String,
}

impl From<&Receipt> for StoredReceipt {
    fn from(receipt: &Receipt) -> Self {
        Self {
            id: receipt.id.to_string(),
            from: receipt.from.clone(),
            plugin: receipt.plugin.to_string(),
            message_id: receipt.message_id.clone(),
        }
    }
}

impl From<&Failure> for StoredFailure {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code,
            text: failure.text.clone(),
        }
    }
}

impl StoredReceipt {
    fn read(self) -> Option<Receipt> {
        Some(Receipt {
            id: self.id.parse().ok()?,
            from: self.from,
            plugin: self.plugin.parse().ok()?,
            message_id: self.message_id,
        })
    }
}

impl StoredFailure {
    fn read(self) -> Failure {
        Failure {
            code: self.code,
            text: self.text,
        }
    }
}

/// What lies under a key.
pub(super) fn stored(outcome: &Outcome) -> Value {
    let stored = match outcome {
        Outcome::Sent(receipt) => Stored::Sent {
            receipt: receipt.into(),
        },
        Outcome::Queued {
            receipt,
            failure,
            retry_count,
            next_retry_at,
        } => Stored::Queued {
            receipt: receipt.into(),
            failure: failure.into(),
            retry_count: *retry_count,
            next_retry_at: *next_retry_at,
        },
        Outcome::Rejected {
            receipt,
            failure,
            may_have_arrived,
        } => Stored::Rejected {
            receipt: receipt.into(),
            failure: failure.into(),
            may_have_arrived: *may_have_arrived,
        },
    };
    // Texts and numbers only: nothing in there can fail to be written.
    serde_json::to_value(stored).unwrap_or_default()
}

fn read(stored: Value) -> Option<Outcome> {
    Some(match serde_json::from_value(stored).ok()? {
        Stored::Sent { receipt } => Outcome::Sent(receipt.read()?),
        Stored::Queued {
            receipt,
            failure,
            retry_count,
            next_retry_at,
        } => Outcome::Queued {
            receipt: receipt.read()?,
            failure: failure.read(),
            retry_count,
            next_retry_at,
        },
        Stored::Rejected {
            receipt,
            failure,
            may_have_arrived,
        } => Outcome::Rejected {
            receipt: receipt.read()?,
            failure: failure.read(),
            may_have_arrived,
        },
    })
}

impl Sending {
    /// What the message of a key has come to; `None` where the key is free.
    pub(super) async fn answer_to(
        &self,
        app: AppId,
        key: &IdempotencyKey,
    ) -> Result<Option<Answer>, SendError> {
        let unreadable = |error: sqlx::Error| {
            trouble!(error, error, app_id = %app, "an idempotency key can't be looked up");
            SendError::NotTaken
        };
        let mut connection = self.pool.acquire().await.map_err(unreadable)?;
        let known = idempotency_keys::find(&mut connection, app, &key.key)
            .await
            .map_err(unreadable)?;
        let Some(known) = known else { return Ok(None) };
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
                let outcome = read(answer).ok_or_else(|| {
                    tracing::error!(log_id = %log, "a stored answer can't be read");
                    SendError::Unknown
                });
                // Whoever stored the message may not have heard so, and be about to take it back.
                let may_go = matches!(outcome, Ok(Outcome::Queued { .. })) && !is_bound;
                if may_go && !self.bind(&mut connection, app, key, log).await? {
                    return Ok(None);
                }
                outcome
            }
            Known { in_spool: true, .. } => Err(SendError::InFlight),
            // Its process died before it had answered; the log says what became of it.
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

    /// Binds an answer that is about to be told; `false` where its message was taken back. Where that can't be
    /// known, nothing is told but that it is being worked on, since the message may go out.
    async fn bind(
        &self,
        connection: &mut PgConnection,
        app: AppId,
        key: &IdempotencyKey,
        log: LogId,
    ) -> Result<bool, SendError> {
        let id = self.lease.id();
        let bound = async {
            Ok(
                if idempotency_keys::bind(connection, id, app, &key.key, log).await? {
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

    /// Forgets keys that are older than a day.
    pub async fn forget_keys(&self) -> Result<(), sqlx::Error> {
        let before = self.clock.now() - KEPT;
        let mut connection = self.pool.acquire().await?;
        while idempotency_keys::forget(&mut connection, before, FORGOTTEN).await? > 0 {}
        Ok(())
    }
}

fn outcome_of(log: LogId, ending: email_logs::Ending) -> Option<Outcome> {
    let plugin: Plugin = ending.plugin.parse().ok()?;
    let receipt = Receipt {
        id: log,
        from: ending.from_address,
        plugin,
        message_id: ending.message_id,
    };
    if ending.status == LogStatus::Sent.as_str() {
        return Some(Outcome::Sent(receipt));
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
            Outcome::Sent(receipt.clone()),
            Outcome::Queued {
                receipt: receipt.clone(),
                failure: failure.clone(),
                retry_count: 1,
                next_retry_at: now,
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
            assert_eq!(read(bound), Some(outcome.clone()));
            assert_eq!(read(stored(&outcome)), Some(outcome));
        }
        assert_eq!(read(Value::Null), None);
    }
}
