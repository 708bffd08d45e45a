//! Claims waiting notices with a lease by the database's clock. A claim is identified by the `due_at` that it sets: a
//! process that finds another value there has been overtaken, and changes nothing.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::queue_length::QueueLength;
use mailgate_types::ids::SubscriberId;
use mailgate_types::notice::Notice;
use mailgate_types::past::Past;

/// A claimed notice.
#[derive(Debug, Clone)]
pub struct Due {
    /// Its row.
    pub id: Uuid,
    /// The subscriber it is addressed to.
    pub subscriber: SubscriberId,
    /// The subscriber's name.
    pub label: String,
    /// The recipient: the subscriber's contact address, unless the notice has another.
    pub email: String,
    /// Its content; `None` if it can't be read.
    pub notice: Option<Notice>,
    /// Attempts so far, this one included.
    pub attempts: i32,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// A previous process started to send it and never recorded the outcome.
    pub left_before: bool,
    /// Identifies the claim.
    pub lease_until: DateTime<Utc>,
}

/// The final outcome of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// The relay accepted it.
    Sent,
    /// No relay is configured.
    Skipped,
    /// The relay rejected it.
    GivenUp,
    /// The relay may have accepted it.
    Unknown,
}

impl NoticeOutcome {
    /// The name that it is stored under.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Skipped => "skipped",
            Self::GivenUp => "given_up",
            Self::Unknown => "unknown",
        }
    }
}

/// Claims up to `limit` notices that are due at `now`, oldest first, for the length from `now` to `lease_until`.
pub async fn claim(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Due>, sqlx::Error> {
    let rows = sqlx::query!(
        "WITH due AS (
             SELECT id FROM billing_notices
             WHERE due_at IS NOT NULL AND due_at <= $1
                   AND (lease_until IS NULL OR lease_until <= now())
             ORDER BY due_at LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         UPDATE billing_notices AS notice
         SET due_at = $2, lease_until = now() + ($2::timestamptz - $1::timestamptz),
             attempts = notice.attempts + 1
         FROM due, subscribers AS subscriber
         WHERE notice.id = due.id AND subscriber.id = notice.subscriber_id
         RETURNING notice.id, notice.subscriber_id, subscriber.label, subscriber.email,
                   notice.data, notice.attempts, notice.created_at, notice.leaving_at",
        now,
        lease_until,
        limit,
    )
    .fetch_all(connection)
    .await?;
    let claimed = rows.into_iter().map(|row| {
        let notice: Option<Notice> = serde_json::from_value(row.data).ok();
        let recipient = notice.as_ref().and_then(Notice::recipient);
        Due {
            id: row.id,
            subscriber: SubscriberId(row.subscriber_id),
            label: row.label,
            email: recipient.map_or(row.email, str::to_owned),
            notice,
            attempts: row.attempts,
            created_at: row.created_at,
            left_before: row.leaving_at.is_some(),
            lease_until,
        }
    });
    Ok(claimed.collect())
}

/// Records that the mail is about to be sent; `false` if another process has taken over the claim.
pub async fn leaves(
    connection: &mut PgConnection,
    due: &Due,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let changed = sqlx::query!(
        "UPDATE billing_notices SET leaving_at = $3 WHERE id = $1 AND due_at = $2",
        due.id,
        due.lease_until,
        now,
    )
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}

/// The relay did not accept it: schedules another attempt at `due_at`.
pub async fn postpone(
    connection: &mut PgConnection,
    due: &Due,
    due_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE billing_notices SET due_at = $3, lease_until = NULL, leaving_at = NULL
         WHERE id = $1 AND due_at = $2",
        due.id,
        due.lease_until,
        due_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records the final outcome.
pub async fn record_outcome(
    connection: &mut PgConnection,
    due: &Due,
    outcome: NoticeOutcome,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let sent_at = (outcome == NoticeOutcome::Sent).then_some(now);
    sqlx::query!(
        "UPDATE billing_notices SET due_at = NULL, lease_until = NULL, outcome = $3, sent_at = $4
         WHERE id = $1 AND due_at = $2",
        due.id,
        due.lease_until,
        outcome.as_str(),
        sent_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes up to `limit` notices that have an outcome, from before `past`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM billing_notices WHERE id IN (
             SELECT id FROM billing_notices
             WHERE created_at < $1 AND due_at IS NULL
             ORDER BY created_at LIMIT $2
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// How many notices are waiting, for the metrics.
pub async fn waiting(connection: &mut PgConnection) -> Result<QueueLength, sqlx::Error> {
    // In index order, so that nothing else is scanned.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM billing_notices WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 100000
                  ) AS sample) AS "entries!",
                  (SELECT min(due_at) FROM billing_notices WHERE due_at IS NOT NULL) AS due_first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(QueueLength::new(row.entries, row.due_first))
}
