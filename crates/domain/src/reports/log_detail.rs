//! One message of the log, with its attempts, bounces and webhook deliveries.

use chrono::{DateTime, Utc};

use super::{Details, LoggedAttempt, LoggedBounce, LoggedDelivery, LoggedReply, Reports};
use crate::explanation::{self, Explanation};
use mailgate_storage::replies::MOST_OF_A_MESSAGE;
use mailgate_storage::spool::waiting::{self, Scheduled};
use mailgate_storage::{
    bounces, email_attempts, email_logs, log_retention, replies, webhook_deliveries,
};
use mailgate_types::bounce_type::BounceType;
use mailgate_types::ids::{LogId, SubscriberId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::send_at::FURTHEST;

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundMessage {
    /// The log has it.
    Logged(Box<LogDetail>),
    /// It is scheduled.
    Scheduled(Box<Scheduled>),
}

/// Everything known about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDetail {
    /// Its log entry.
    pub details: Details,
    /// Its attempts, in order. Empty for a message that was sent at the first one: the log entry has all of it.
    pub attempts: Vec<LoggedAttempt>,
    /// Its bounces, in the order in which they were read.
    pub bounces: Vec<LoggedBounce>,
    /// The first replies to it, in the order in which they were read.
    pub replies: Vec<LoggedReply>,
    /// The webhook deliveries of events about it.
    pub webhook_deliveries: Vec<LoggedDelivery>,
}

impl LogDetail {
    /// Why the message didn't arrive, in plain English; `None` if it was sent, and not bounced.
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        let bounce = (self.bounces.iter())
            .find(|bounce| bounce.bounce_type == BounceType::Permanent.as_str());
        if let Some(bounce) = bounce {
            let (status, diagnostic) = (bounce.status.as_deref(), bounce.diagnostic.as_deref());
            return Some(explanation::of_bounce(status, diagnostic));
        }
        let log = &self.details.log;
        if log.status == LogStatus::Sent {
            return None;
        }
        let text = log.error_message.as_deref().unwrap_or_default();
        Some(explanation::of_failure(text, log.status))
    }
}

impl Reports {
    /// A message of the subscriber's log, or one that is scheduled; `None` if there is none, or it belongs to another
    /// subscriber.
    pub async fn log(
        &self,
        subscriber: SubscriberId,
        id: LogId,
    ) -> Result<Option<FoundMessage>, sqlx::Error> {
        let mut snapshot = self.snapshot().await?;
        let kept_since = log_retention::kept_since(&mut snapshot).await?;
        let Some(moment) = id.moment().filter(|moment| *moment >= kept_since) else {
            return Ok(None);
        };
        let Some(details) = email_logs::details(&mut snapshot, subscriber, id).await? else {
            let scheduled = waiting::find_scheduled(&mut snapshot, subscriber, id).await?;
            return Ok(scheduled.map(|it| FoundMessage::Scheduled(Box::new(it))));
        };
        let mut attempts = email_attempts::of_log(&mut snapshot, id).await?;
        // A message that was sent at its first attempt has no attempt rows.
        if attempts.is_empty() && details.log.status == LogStatus::Sent {
            attempts.push(LoggedAttempt {
                number: 1,
                at: details.log.sent_at,
                duration_ms: None,
                status: LogStatus::Sent,
                error_message: None,
            });
        }
        let bounces = bounces::of_log(&mut snapshot, id).await?;
        let replies = replies::of_log(&mut snapshot, id, MOST_OF_A_MESSAGE).await?;
        let webhook_deliveries =
            webhook_deliveries::of_log(&mut snapshot, id, since(&details, moment)).await?;
        snapshot.commit().await?;
        Ok(Some(FoundMessage::Logged(Box::new(LogDetail {
            details,
            attempts,
            bounces,
            replies,
            webhook_deliveries,
        }))))
    }
}

/// The earliest time of a message's events: its first attempt, or its acceptance if it was cancelled before.
fn since(details: &Details, moment: DateTime<Utc>) -> DateTime<Utc> {
    if details.log.is_cancelled() {
        moment - FURTHEST
    } else {
        moment
    }
}
