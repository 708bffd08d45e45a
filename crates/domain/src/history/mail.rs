//! Messages that have ended, that wait for their next attempt, and that are scheduled.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{History, HistoryError};
use mailgate_storage::database::{journal, transaction};
use mailgate_storage::email_attempts::{self, LoggedAttempt};
use mailgate_storage::spool::{self, Attempt, Closing, Deferral, Opening};
use mailgate_storage::{email_counters, gateways};
use mailgate_types::ids::{GatewayId, LogId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::message::Message;
use mailgate_types::secrets::SendKey;

/// A message of the past.
#[derive(Debug)]
pub struct PastMessage {
    /// What was accepted.
    pub opening: Opening,
    /// Its attempts, in order. A message that was cancelled may have none.
    pub attempts: Vec<LoggedAttempt>,
    /// Its state.
    pub end: PastEnd,
}

/// The state of a message of the past.
#[derive(Debug)]
pub enum PastEnd {
    /// It has ended: sent, or failed for this reason.
    Ended(LogStatus, Option<String>),
    /// It waits.
    Waiting {
        /// The bytes that go out.
        message: Message,
        /// When it is tried again.
        next_attempt_at: DateTime<Utc>,
        /// If the provider may already have it: the latest time of its transmission.
        left_by: Option<DateTime<Utc>>,
    },
}

/// A message that is scheduled for its opening's time.
#[derive(Debug)]
pub struct ScheduledMessage {
    /// What was accepted.
    pub opening: Opening,
    /// The bytes that go out.
    pub message: Message,
}

impl History {
    /// Writes messages, in one transaction: their log rows, attempts and counters, and those in the queue with their
    /// bytes. Scheduled ones were accepted under `send_key`. No event is emitted.
    pub async fn write_mail(
        &self,
        messages: &[PastMessage],
        scheduled: &[ScheduledMessage],
        send_key: &SendKey,
    ) -> Result<(), HistoryError> {
        let mut transaction = transaction::begin(&self.pool).await?;
        // A gateway row that no other process ever sees owns them until they end, so that the usual statements apply.
        let gateway = GatewayId::at(self.now);
        gateways::begin(&mut transaction, gateway).await?;
        let openings: Vec<&Opening> = messages.iter().map(|message| &message.opening).collect();
        let opened = journal::open(&mut transaction, gateway, &openings).await?;
        if !opened.is_ok_and(|opened| opened.len() == messages.len()) {
            return Err(HistoryError::Nowhere("a message"));
        }
        let earlier: Vec<(LogId, &LoggedAttempt)> = messages.iter().flat_map(earlier).collect();
        email_attempts::insert(&mut transaction, &earlier).await?;
        let closings: Vec<Closing> = messages.iter().filter_map(closing).collect();
        let closings: Vec<&Closing> = closings.iter().collect();
        let written = journal::write(&mut transaction, gateway, &[], &closings, &[], self.now);
        (written.await?).map_err(|_| sqlx::Error::RowNotFound)?;
        for message in messages {
            keep(&mut transaction, gateway, message).await?;
        }
        let hash = Sha256::digest(send_key.expose().as_bytes());
        for ScheduledMessage { opening, message } in scheduled {
            if !spool::schedule(&mut transaction, opening, &hash).await? {
                return Err(HistoryError::Nowhere("a scheduled message"));
            }
            store(&mut transaction, opening.id, message).await?;
        }
        gateways::remove(&mut transaction, gateway).await?;
        Ok(transaction.commit().await?)
    }
}

/// The attempts before the one that the message's end records.
fn earlier(message: &PastMessage) -> impl Iterator<Item = (LogId, &LoggedAttempt)> {
    let before = message.attempts.len().saturating_sub(1);
    let attempts = message.attempts.iter().take(before);
    attempts.map(|attempt| (message.opening.id, attempt))
}

fn last(message: &PastMessage) -> Option<Attempt> {
    let attempt = message.attempts.last()?;
    Some(Attempt {
        number: attempt.number,
        at: attempt.at,
        milliseconds: attempt.duration_ms?,
    })
}

fn closing(message: &PastMessage) -> Option<Closing> {
    let PastEnd::Ended(status, error_message) = &message.end else {
        return None;
    };
    Some(Closing {
        id: message.opening.id,
        status: *status,
        error_message: error_message.clone(),
        message_id: None,
        attempt: last(message),
    })
}

/// Stores a message that waits; others are left.
async fn keep(
    connection: &mut PgConnection,
    gateway: GatewayId,
    past: &PastMessage,
) -> Result<(), HistoryError> {
    let PastEnd::Waiting {
        message,
        next_attempt_at,
        left_by,
    } = &past.end
    else {
        return Ok(());
    };
    let failed = past.attempts.last();
    let deferral = Deferral {
        id: past.opening.id,
        attempts: failed.map_or(0, |attempt| attempt.number),
        error_message: failed
            .and_then(|attempt| attempt.error_message.clone())
            .unwrap_or_default(),
        next_attempt_at: *next_attempt_at,
        left_by: *left_by,
        awaits_subscription: false,
        awaits_pace: false,
        attempt: last(past),
        due_at: None,
    };
    let deferred = spool::defer(connection, gateway, &deferral).await?;
    let deferred = deferred.ok_or(HistoryError::Nowhere("a waiting message"))?;
    store(connection, past.opening.id, message).await?;
    Ok(email_counters::count_deferred(connection, &deferred, 1).await?)
}

async fn store(
    connection: &mut PgConnection,
    id: LogId,
    message: &Message,
) -> Result<(), sqlx::Error> {
    for (position, chunk) in (0..).zip(message.chunks()) {
        spool::add_chunk(connection, id, position, chunk).await?;
    }
    Ok(())
}
