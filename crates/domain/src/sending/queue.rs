//! The queue as its owners see and change it: waiting messages with their reasons; retrying one now, or cancelling it.
//! Needs nothing but the database, so that the operator's commands work beside running gateways.

mod cancel;
pub(crate) mod clock_set;
pub(crate) mod due;
pub(crate) mod persist;
pub(crate) mod places;
pub(crate) mod retry_now;
pub(crate) mod schedule;
pub(crate) mod spooled;
pub(crate) mod take_up;
pub(crate) mod verify_waiting;

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::accept::gate::Blocked;
use mailgate_storage::database::pool;
use mailgate_storage::spool::usage::Usage;
use mailgate_storage::spool::waiting::{self, Groups, Locked};
use mailgate_storage::{apps, email_logs};
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId};
use mailgate_types::log_status::LogStatus;
use mailgate_types::shared_places::{Busy, SharedPlaces};
use mailgate_types::waiting_reason::WaitingReason;

pub use mailgate_storage::spool::waiting::{Group, Listed as QueuedMessage};

/// Maximum groups of a summary.
pub const MOST_GROUPS: i64 = 100;

/// Maximum messages that a summary reads: one subscriber's default quota.
const READ: i64 = 20_000;

/// Summaries that one process computes at the same time, one for each subscriber, and how long a further one waits.
const SUMMARIES: usize = 2;
const PATIENCE: Duration = Duration::from_secs(5);

/// The queue.
#[derive(Debug, Clone)]
pub struct Queue {
    pool: PgPool,
    clock: SharedClock,
    /// Frequent summaries of a large queue slow down only their own subscriber, not the database or others.
    summaries: SharedPlaces<SubscriberId>,
}

/// The messages that a caller may see and change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of a subscriber's apps.
    Subscriber(SubscriberId),
    /// All: the operator.
    All,
}

impl Scope {
    fn subscriber(self) -> Option<SubscriberId> {
        match self {
            Self::Subscriber(subscriber) => Some(subscriber),
            Self::All => None,
        }
    }
}

/// Why a message can't be retried now or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no such message, or it belongs to another subscriber.
    #[error("There is no message with this id")]
    NotFound,
    /// An attempt is in progress.
    #[error("The message is being sent at this moment")]
    InProgress,
    /// The provider may have it: an attempt was interrupted after the message was transmitted.
    #[error(
        "The message may have arrived: sending was interrupted, and the Sent folder is still to be checked"
    )]
    OutcomeUnknown,
    /// It is scheduled.
    #[error("The message is scheduled, and leaves at its own time")]
    Scheduled,
    /// The provider has accepted it.
    #[error("The message was sent")]
    Sent,
    /// It has failed permanently, or was cancelled.
    #[error("The message has failed for good, or was cancelled")]
    Failed,
    /// The subscription blocks sending.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// Another one of the subscriber's is in progress.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The database's error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The waiting messages of a subscriber's apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSummary {
    /// The total, as the quota counts it.
    pub usage: Usage,
    /// The messages by app, mailbox and reason.
    pub groups: Groups,
}

impl Queue {
    /// Creates the queue over a database.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self {
            pool,
            clock,
            summaries: SharedPlaces::new(SUMMARIES, 1),
        }
    }

    /// The waiting messages of a subscriber's apps: the largest groups, [`MOST_GROUPS`] at most.
    pub async fn summary(&self, subscriber: SubscriberId) -> Result<QueueSummary, SummaryError> {
        let _place = self.summaries.take_within(subscriber, PATIENCE).await?;
        let mut snapshot = pool::snapshot(&self.pool).await?;
        let usage = waiting::usage_of(&mut snapshot, subscriber).await?;
        let groups = waiting::groups(&mut snapshot, subscriber, MOST_GROUPS, READ).await?;
        snapshot.commit().await?;
        Ok(QueueSummary { usage, groups })
    }

    /// The total of a subscriber's waiting messages.
    pub async fn usage(&self, subscriber: SubscriberId) -> Result<Usage, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        waiting::usage_of(&mut connection, subscriber).await
    }

    /// Up to `limit` waiting messages after the first `offset`, earliest due first: of one app or of all, of one
    /// mailbox or any, for one reason or any.
    pub async fn list(
        &self,
        app: Option<AppId>,
        mailbox: Option<CredentialId>,
        reason: Option<WaitingReason>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<QueuedMessage>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        waiting::list(&mut connection, app, mailbox, reason, limit, offset).await
    }

    /// A message that waits or is being sent, and why its last attempt failed; `None` if it has left the queue.
    pub async fn show(
        &self,
        id: LogId,
    ) -> Result<Option<(QueuedMessage, Option<String>)>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let Some(message) = waiting::show(&mut connection, id).await? else {
            return Ok(None);
        };
        let logged = email_logs::ending(&mut connection, id).await?;
        Ok(Some((message, logged.and_then(|log| log.error_message))))
    }
}

/// Locks a waiting message until the transaction ends, and keeps its app from being deleted. `None` if it isn't in the
/// queue, or isn't the caller's; [`QueueError::InProgress`] if a process has claimed it.
async fn lock(
    connection: &mut PgConnection,
    scope: Scope,
    id: LogId,
) -> Result<Option<Locked>, QueueError> {
    let Some(app) = app_of(connection, scope, id).await? else {
        return Ok(None);
    };
    // Before the message, in the same order as an app's deletion.
    if !apps::keep(connection, app).await? {
        return Ok(None);
    }
    let locked = waiting::lock(connection, id).await?;
    if locked.is_none() && app_of(connection, scope, id).await?.is_some() {
        return Err(QueueError::InProgress);
    }
    Ok(locked)
}

/// The app of a message in the queue, if it is the caller's.
async fn app_of(
    connection: &mut PgConnection,
    scope: Scope,
    id: LogId,
) -> Result<Option<AppId>, sqlx::Error> {
    let owner = waiting::owner(connection, id).await?;
    let owner = owner.filter(|(_, owner)| scope.subscriber().is_none_or(|it| it == *owner));
    Ok(owner.map(|(app, _)| app))
}

/// Why a message that is not in the queue can't be changed; its log row's error if it has failed.
async fn ended(
    connection: &mut PgConnection,
    scope: Scope,
    id: LogId,
) -> Result<(QueueError, Option<String>), sqlx::Error> {
    let logged = email_logs::state(connection, scope.subscriber(), id).await?;
    Ok(match logged {
        None => (QueueError::NotFound, None),
        Some((LogStatus::Sent, error)) => (QueueError::Sent, error),
        Some((LogStatus::FailedPerm, error)) => (QueueError::Failed, error),
        // It was requeued just now.
        Some((LogStatus::FailedTemp, error)) => (QueueError::InProgress, error),
    })
}
