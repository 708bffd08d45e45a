//! The events of the messages and of what has come back.

use chrono::{DateTime, TimeDelta, Utc};

use super::mail::Written;
use super::responses::Responses;
use mailgate_domain::history::{LoggedAttempt, Opening, PastEnd, PastEvent};
use mailgate_types::event::{EmailEvent, Emission, Event};
use mailgate_types::log_status::LogStatus;
use mailgate_types::moment::iso8601;

/// All events, by time.
pub(super) fn of(written: &[Written], responses: &Responses) -> Vec<PastEvent> {
    let mut events = Vec::new();
    for one in written {
        of_message(one, &mut events);
    }
    let message = |log| written.iter().find(move |one| one.past.opening.id == log);
    for past in &responses.bounces {
        let Some(opening) = message(past.bounce.log).map(|one| &one.past.opening) else {
            continue;
        };
        let bounce = past.bounce.clone();
        let event = Event::EmailBounced {
            log_id: opening.id,
            message_id: opening.message_id.clone(),
            from_address: opening.from_address.clone(),
            to_address: bounce.recipient,
            subject: opening.subject.clone(),
            plugin: opening.plugin,
            bounce_type: bounce.bounce_type,
            status: bounce.status,
            diagnostic: bounce.diagnostic,
            bounced_at: iso8601(past.at),
            metadata: opening.metadata.clone(),
        };
        events.push(happened(opening, event, past.at));
    }
    for past in &responses.replies {
        let Some(opening) = message(past.log).map(|one| &one.past.opening) else {
            continue;
        };
        let event = Event::EmailReply {
            message_id: opening.message_id.clone().unwrap_or_default(),
            from_address: past.from_address.clone(),
            to_address: opening.from_address.clone(),
            subject: format!("Re: {}", opening.subject),
            metadata: opening.metadata.clone(),
        };
        events.push(happened(opening, event, past.at));
    }
    events.sort_by_key(|event| event.at);
    events
}

fn of_message(written: &Written, events: &mut Vec<PastEvent>) {
    let opening = &written.past.opening;
    let ended = |attempt: &LoggedAttempt| {
        attempt.at + TimeDelta::milliseconds(attempt.duration_ms.unwrap_or_default())
    };
    let attempts = &written.past.attempts;
    for (place, attempt) in attempts.iter().enumerate() {
        let next = attempts.get(place + 1).map(|next| next.at);
        let waits = match &written.past.end {
            PastEnd::Waiting {
                next_attempt_at, ..
            } => Some(*next_attempt_at),
            PastEnd::Ended(..) => None,
        };
        let error = attempt.error_message.clone().unwrap_or_default();
        let event = match attempt.status {
            LogStatus::Sent => Event::EmailSent {
                email: email(opening),
                message_id: opening.message_id.clone(),
            },
            LogStatus::FailedTemp => Event::EmailFailedTemp {
                email: email(opening),
                error,
                retry_count: attempt.number,
                next_retry_at: next.or(waits).map(iso8601).unwrap_or_default(),
            },
            LogStatus::FailedPerm => Event::EmailFailedPerm {
                email: email(opening),
                error,
                r#final: true,
            },
        };
        events.push(happened(opening, event, ended(attempt)));
    }
}

fn email(opening: &Opening) -> EmailEvent {
    EmailEvent {
        log_id: opening.id,
        from_address: opening.from_address.clone(),
        to_address: opening.to_address.clone(),
        subject: opening.subject.clone(),
        plugin: opening.plugin,
        metadata: opening.metadata.clone(),
    }
}

fn happened(opening: &Opening, event: Event, at: DateTime<Utc>) -> PastEvent {
    PastEvent {
        emission: Emission {
            app: opening.app,
            event,
            log: Some(opening.id),
        },
        at: at - TimeDelta::nanoseconds(i64::from(at.timestamp_subsec_nanos() % 1_000_000)),
        deliveries: Vec::new(),
    }
}
