//! One message of the log, with its attempts, bounces and webhook deliveries.

use super::{Details, LoggedAttempt, LoggedBounce, LoggedDelivery, Reports};
use crate::storage::{bounces, email_attempts, email_logs, log_retention, webhook_deliveries};
use mailgate_types::ids::{LogId, SubscriberId};

/// Everything known about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDetail {
    /// Its log entry.
    pub details: Details,
    /// Its attempts, in order. Empty for a message that was sent at the first one: the log entry says all about that.
    pub attempts: Vec<LoggedAttempt>,
    /// Its bounces, in the order in which they were read.
    pub bounces: Vec<LoggedBounce>,
    /// The webhook deliveries of events about it.
    pub webhook_deliveries: Vec<LoggedDelivery>,
}

impl Reports {
    /// A message of the subscriber's log; `None` if there is none, or it belongs to another subscriber.
    pub async fn log(
        &self,
        subscriber: SubscriberId,
        id: LogId,
    ) -> Result<Option<LogDetail>, sqlx::Error> {
        let mut snapshot = self.snapshot().await?;
        let kept_since = log_retention::kept_since(&mut snapshot).await?;
        if id.moment().is_none_or(|moment| moment < kept_since) {
            return Ok(None);
        }
        let Some(details) = email_logs::details(&mut snapshot, subscriber, id).await? else {
            return Ok(None);
        };
        let attempts = email_attempts::of_log(&mut snapshot, id).await?;
        let bounces = bounces::of_log(&mut snapshot, id).await?;
        let webhook_deliveries = webhook_deliveries::of_log(&mut snapshot, id).await?;
        snapshot.commit().await?;
        Ok(Some(LogDetail {
            details,
            attempts,
            bounces,
            webhook_deliveries,
        }))
    }
}
