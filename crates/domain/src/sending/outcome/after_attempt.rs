//! The effect of an attempt on its message: sent, failed, or retried, and when.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::sending::Sending;
use crate::sending::submit::attempt::Attempted;
use mailgate_providers::mail::verdict::{Failure, Verdict};
use mailgate_settings::Unverifiable;
use mailgate_types::past::Past;

/// The error text of a message whose outcome stays unknown.
pub(in crate::sending) const UNVERIFIABLE: &str = "Delivery is unconfirmed: sending was interrupted, and the Sent folder gives \
    no answer; it may have arrived, and was not sent again";

/// The state of a message after an attempt.
#[derive(Debug)]
pub(in crate::sending) enum AfterAttempt {
    Sent {
        /// The Message-ID that the provider assigned.
        message_id: Option<String>,
    },
    Failed(Failure),
    Again {
        failure: Failure,
        next_attempt_at: DateTime<Utc>,
        /// The provider may already have it.
        outcome_unknown: bool,
    },
}

impl Sending {
    /// Evaluates attempt number `attempts` of a message that was accepted at `opened_at`.
    pub(in crate::sending) fn after_attempt(
        &self,
        attempted: Attempted,
        attempts: i32,
        opened_at: DateTime<Utc>,
    ) -> AfterAttempt {
        let (failure, retry_after, outcome_unknown) = match attempted {
            Attempted::Known(Verdict::Sent { message_id }) => {
                return AfterAttempt::Sent { message_id };
            }
            Attempted::Known(
                Verdict::Permanent(failure)
                | Verdict::SenderRefused(failure)
                | Verdict::TokenRefused(failure),
            ) => return AfterAttempt::Failed(failure),
            Attempted::Known(Verdict::Unknown(failure)) => match self.settings.unverifiable {
                Unverifiable::Fail => return AfterAttempt::Failed(unverifiable(&failure)),
                Unverifiable::Retry => (failure, None, false),
            },
            Attempted::Known(Verdict::Temporary {
                failure,
                retry_after,
            }) => (failure, retry_after, false),
            Attempted::Unconfirmed(failure) => (failure, None, true),
        };
        let scheduled = usize::try_from(attempts)
            .ok()
            .and_then(|attempts| self.settings.retry.get(attempts.checked_sub(1)?))
            .filter(|_| !self.is_too_old(opened_at));
        match scheduled {
            None if outcome_unknown => AfterAttempt::Failed(unverifiable(&failure)),
            None => AfterAttempt::Failed(failure),
            Some(wait) => {
                let wait = jittered(*wait).max(retry_after.unwrap_or_default());
                AfterAttempt::Again {
                    failure,
                    next_attempt_at: self.clock.now()
                        + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1)),
                    outcome_unknown,
                }
            }
        }
    }
}

impl Sending {
    /// Whether a message accepted at `opened_at` has certainly waited for its maximum time.
    pub(in crate::sending) fn is_too_old(&self, opened_at: DateTime<Utc>) -> bool {
        Past::by(&self.clock).moment() >= self.longest(opened_at)
    }

    /// The end of the maximum wait of a message accepted at `opened_at`.
    pub(in crate::sending) fn longest(&self, opened_at: DateTime<Utc>) -> DateTime<Utc> {
        let age = TimeDelta::from_std(self.settings.maximum_age).unwrap_or(TimeDelta::MAX);
        opened_at
            .checked_add_signed(age)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

/// The reason for giving up a message that may have arrived.
pub(in crate::sending) fn unverifiable(failure: &Failure) -> Failure {
    Failure::own(format!("{UNVERIFIABLE} ({failure})"))
}

/// Adds up to a tenth, so that messages that failed together aren't retried together.
fn jittered(wait: Duration) -> Duration {
    wait + wait.mul_f64(0.1 * rand::random::<f64>())
}
