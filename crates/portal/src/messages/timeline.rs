//! A message's history as one timeline.

use chrono::{DateTime, Utc};

use crate::page::words::{self, Moment, Status, cancelled, door, status};
use crate::webhooks::path_of;
use mailgate_domain::reports::{
    LogDetail, LoggedAttempt, LoggedBounce, LoggedDelivery, LoggedReply,
};
use mailgate_domain::sending::queue::QueuedMessage;
use mailgate_types::door::Door;
use mailgate_types::ids::AppId;

/// A past or future event.
pub(crate) struct Happening {
    order: DateTime<Utc>,
    /// `None`: unknown.
    pub(crate) at: Option<Moment>,
    pub(crate) title: String,
    pub(crate) status: Status,
    /// An external text, or ours.
    pub(crate) text: String,
    /// The page that has more of it; empty: none.
    pub(crate) path: String,
}

const fn marked(word: &'static str, class: &'static str) -> Status {
    Status { word, class }
}

impl Happening {
    pub(crate) fn new(at: DateTime<Utc>, title: impl Into<String>, status: Status) -> Self {
        Self {
            order: at,
            at: Some(Moment::new(at)),
            title: title.into(),
            status,
            text: String::new(),
            path: String::new(),
        }
    }

    pub(crate) fn saying(self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// Without a time, at a place among the others.
    pub(crate) fn undated(order: DateTime<Utc>, title: impl Into<String>, status: Status) -> Self {
        Self {
            at: None,
            ..Self::new(order, title, status)
        }
    }

    fn accepted(at: Option<DateTime<Utc>>, by: Option<Door>) -> Self {
        let title = match by {
            Some(by) => format!("Accepted by the gateway ({})", door(by)),
            None => "Accepted by the gateway".to_owned(),
        };
        let status = marked("Accepted", "plain");
        match at {
            Some(at) => Self::new(at, title, status),
            None => Self::undated(DateTime::<Utc>::MIN_UTC, title, status),
        }
    }

    fn attempt(attempt: &LoggedAttempt) -> Self {
        let title = match attempt.duration_ms {
            Some(duration) => format!("Attempt {} ({})", attempt.number, words::duration(duration)),
            None => format!("Attempt {}", attempt.number),
        };
        let words = attempt.error_message.clone().unwrap_or_default();
        Self::new(attempt.at, title, status(attempt.status)).saying(words)
    }

    fn bounce(bounce: &LoggedBounce) -> Self {
        let parts = [bounce.status.as_deref(), bounce.diagnostic.as_deref()];
        let words: Vec<&str> = parts.into_iter().flatten().collect();
        let (title, status) = if bounce.bounce_type == "permanent" {
            ("Bounced", marked("Bounced", "bad"))
        } else {
            ("Delayed", marked("Delayed", "busy"))
        };
        let title = format!("{title} for {}", bounce.recipient);
        Self::new(bounce.bounced_at, title, status).saying(words.join(" "))
    }

    fn reply(reply: &LoggedReply) -> Self {
        let title = format!("Reply from {}", reply.from_address);
        Self::new(reply.replied_at, title, marked("Replied", "good"))
    }

    /// The attempts to deliver one event to one endpoint: the last one says how it went.
    fn deliveries(last: &LoggedDelivery, attempts: usize, app: AppId) -> Self {
        let title = match attempts {
            1 => format!("Webhook {}", last.event),
            _ => format!("Webhook {} ({attempts} attempts)", last.event),
        };
        let status = if last.success {
            marked("Delivered", "good")
        } else {
            marked("Not delivered", "bad")
        };
        Self {
            path: format!("{}/deliveries/{}", path_of(last.endpoint, app), last.id),
            ..Self::new(last.delivered_at, title, status)
        }
    }

    fn next(message: &QueuedMessage) -> Option<Self> {
        let at = message.next_attempt_at.unwrap_or(message.opened_at);
        if message.in_progress {
            let status = marked("In progress", "busy");
            return Some(Self::new(at, "Being sent now", status));
        }
        let at = message.next_attempt_at?;
        Some(Self::new(at, "Next attempt", marked("Planned", "busy")))
    }
}

/// The timeline of a logged message, in order of time; `waiting` while it is in the queue.
pub(crate) fn timeline(detail: &LogDetail, waiting: Option<&QueuedMessage>) -> Vec<Happening> {
    let log = &detail.details.log;
    let is_cancelled = log.is_cancelled();
    // The ID of a scheduled message holds its `send_at`.
    let was_scheduled = is_cancelled && detail.attempts.is_empty();
    let accepted = log.id.moment().unwrap_or(log.sent_at);
    let accepted = (!was_scheduled).then_some(accepted);
    let mut all = vec![Happening::accepted(accepted, detail.details.door)];
    all.extend(detail.attempts.iter().map(Happening::attempt));
    all.extend(detail.bounces.iter().map(Happening::bounce));
    all.extend(detail.replies.iter().map(Happening::reply));
    let mut events: Vec<(&LoggedDelivery, usize)> = Vec::new();
    for delivery in &detail.webhook_deliveries {
        let of = |it: &LoggedDelivery| (it.message, it.endpoint);
        match events.iter_mut().find(|(last, _)| of(last) == of(delivery)) {
            Some((last, attempts)) => {
                *last = delivery;
                *attempts += 1;
            }
            None => events.push((delivery, 1)),
        }
    }
    let deliveries = events.into_iter();
    all.extend(deliveries.map(|(last, attempts)| Happening::deliveries(last, attempts, log.app)));
    all.extend(waiting.and_then(Happening::next));
    if is_cancelled {
        let end = DateTime::<Utc>::MAX_UTC;
        all.push(Happening::undated(end, "Cancelled", cancelled()));
    }
    // A stable sort keeps the order of events in the same millisecond.
    all.sort_by_key(|happening| happening.order);
    all
}

/// The timeline of a scheduled message.
pub(crate) fn scheduled(send_at: DateTime<Utc>, by: Option<Door>) -> Vec<Happening> {
    vec![
        // Its ID holds its `send_at`; the time of acceptance isn't stored.
        Happening::accepted(None, by),
        Happening::new(send_at, "Scheduled for", words::scheduled()),
    ]
}
