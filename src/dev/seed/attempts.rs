//! The attempts of a message, and what they have led to.

use chrono::{DateTime, TimeDelta, Utc};

use super::failures;
use super::fate::Fate;
use super::plan::Plan;
use super::random::Random;
use mailgate_domain::history::{LoggedAttempt, PastEnd};
use mailgate_types::log_status::{CANCELLED, LogStatus};
use mailgate_types::message::Message;

/// Waits between attempts, as in `sending.retry_seconds`.
const RETRY: [i64; 9] = [60, 300, 900, 3_600, 7_200, 14_400, 28_800, 57_600, 86_400];

/// The most attempts of a message that waits.
const MOST_ATTEMPTS: usize = 8;

/// How far ahead it is for a message that may have arrived, so that it stays one for a day's work.
const LOOKED_FOR: TimeDelta = TimeDelta::hours(14);

/// How far ahead the next attempt is at the least.
const AHEAD: TimeDelta = TimeDelta::minutes(12);

/// The attempts of a message: each one that failed for now is followed by the schedule's wait.
pub(super) fn attempts(
    plan: &Plan,
    at: DateTime<Utc>,
    now: DateTime<Utc>,
    random: &mut Random,
) -> Vec<LoggedAttempt> {
    let plugin = plan.person().plugin;
    let (failures, last) = match plan.fate {
        Fate::Sent(failures) => (failures, Some((LogStatus::Sent, None))),
        Fate::Failed(failures) => {
            let error = failures::permanent(plugin, random);
            (failures, Some((LogStatus::FailedPerm, Some(error))))
        }
        Fate::Unconfirmed => {
            let error = failures::UNCONFIRMED;
            (0, Some((LogStatus::FailedPerm, Some(error))))
        }
        Fate::Cancelled => (0, None),
        Fate::Waiting => (MOST_ATTEMPTS, None),
        Fate::Unknown => (1, None),
    };
    let error = match plan.fate {
        Fate::Unknown => failures::BROKEN,
        _ => failures::temporary(plugin, random),
    };
    let failed = std::iter::repeat_n((LogStatus::FailedTemp, Some(error)), failures);
    let mut began = at + TimeDelta::milliseconds(random.between(4, 40));
    let mut attempts = Vec::new();
    for (number, (status, error)) in (1..).zip(failed.chain(last)) {
        // What would be later than now hasn't happened.
        if number > 1 && began > now - TimeDelta::seconds(30) && last.is_none() {
            break;
        }
        let slow = i64::from(status == LogStatus::FailedTemp) * random.between(0, 9_000);
        attempts.push(LoggedAttempt {
            number,
            at: began,
            duration_ms: Some(random.between(180, 1_900) + slow),
            status,
            error_message: error.map(str::to_owned),
        });
        let waits = usize::try_from(number - 1)
            .ok()
            .and_then(|place| RETRY.get(place));
        let wait = waits.copied().unwrap_or_default();
        began += TimeDelta::seconds(wait + random.between(0, wait / 10 + 1));
    }
    attempts
}

/// The state of a message after its attempts.
pub(super) fn end(
    plan: &Plan,
    attempts: &[LoggedAttempt],
    message: &Message,
    now: DateTime<Utc>,
    number: usize,
) -> PastEnd {
    let last = attempts.last();
    match plan.fate {
        Fate::Cancelled => PastEnd::Ended(LogStatus::FailedPerm, Some(CANCELLED.to_owned())),
        Fate::Sent(_) | Fate::Failed(_) | Fate::Unconfirmed => {
            let status = last.map_or(LogStatus::Sent, |last| last.status);
            PastEnd::Ended(status, last.and_then(|last| last.error_message.clone()))
        }
        Fate::Waiting | Fate::Unknown => {
            let wait = RETRY[attempts.len().saturating_sub(1).min(RETRY.len() - 1)];
            let tried = last.map_or(now, |last| last.at);
            let is_unknown = plan.fate == Fate::Unknown;
            let ahead = if is_unknown { LOOKED_FOR } else { AHEAD };
            let minutes = i64::try_from(number % 50).unwrap_or_default();
            let earliest = now + ahead + TimeDelta::minutes(minutes);
            PastEnd::Waiting {
                message: message.clone(),
                next_attempt_at: earliest.max(tried + TimeDelta::seconds(wait)),
                left_by: is_unknown.then_some(tried + TimeDelta::seconds(1)),
            }
        }
    }
}
