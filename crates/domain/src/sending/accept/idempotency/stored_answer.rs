//! The answer that is stored under a key: its message's outcome as JSON, which the previous release reads too.

use serde_json::Value;

use crate::sending::outcome::Outcome;
use mailgate_providers::mail::verdict::Failure;

/// The form in which an outcome is stored under a key. The previous release reads it too, and doesn't know scheduled
/// messages: it treats them as waiting for an attempt.
pub(in crate::sending) fn of(outcome: &Outcome) -> Value {
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

/// Reads an outcome that [`of`] has written, in this release or an earlier one.
pub(super) fn read(stored: Value) -> Result<Outcome, serde_json::Error> {
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::sending::outcome::Receipt;
    use mailgate_storage::idempotency_keys;
    use mailgate_types::ids::LogId;
    use mailgate_types::plugin::Plugin;

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
            let mut bound = of(&outcome);
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
        let as_before: Outcome = serde_json::from_value(of(&scheduled)).unwrap();
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
            assert_eq!(of(&outcome), written);
        }
    }
}
