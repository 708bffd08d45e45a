//! The table `payprov_events`: events from the payment provider.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::queue_length::QueueLength;
use mailgate_types::past::Past;

/// A stored event: only the ids of its objects, which are fetched again.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// The provider's own id.
    pub id: String,
    /// `invoice.payment_failed` and the like.
    pub kind: String,
    /// The customer that it concerns.
    pub customer_id: Option<String>,
    /// The subscription that it concerns.
    pub subscription_id: Option<String>,
    /// The invoice that it concerns.
    pub invoice_id: Option<String>,
    /// How often it was claimed, this time included.
    pub attempts: i32,
}

/// The final state of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// It was processed.
    Applied,
    /// It is irrelevant here.
    Ignored,
    /// It could not be processed.
    Failed,
}

impl EventState {
    /// The name that it is stored under.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Ignored => "ignored",
            Self::Failed => "failed",
        }
    }
}

/// Stores an event, due immediately. `false` if it was received before.
pub async fn insert(
    connection: &mut PgConnection,
    event: &StoredEvent,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO payprov_events
             (id, type, customer_id, subscription_id, invoice_id, received_at, state, due_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'waiting', $6)
         ON CONFLICT (id) DO NOTHING",
        event.id,
        event.kind,
        event.customer_id,
        event.subscription_id,
        event.invoice_id,
        now,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Claims up to `limit` waiting events, longest due first, for the length from `now` to `lease_until`, by the
/// database's clock.
pub async fn claim(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<StoredEvent>, sqlx::Error> {
    sqlx::query_as!(
        StoredEvent,
        "UPDATE payprov_events
         SET due_at = $2, lease_until = now() + ($2::timestamptz - $1::timestamptz),
             attempts = attempts + 1
         WHERE id IN (
             SELECT id FROM payprov_events
             WHERE state = 'waiting' AND due_at <= $1
                   AND (lease_until IS NULL OR lease_until <= now())
             ORDER BY due_at LIMIT $3
             FOR UPDATE SKIP LOCKED
         )
         RETURNING id, type AS kind, customer_id, subscription_id, invoice_id, attempts",
        now,
        lease_until,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Records the final state of an event.
pub async fn finish(
    connection: &mut PgConnection,
    id: &str,
    state: EventState,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE payprov_events SET state = $2 WHERE id = $1",
        id,
        state.as_str(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Postpones an event that could not be processed.
pub async fn postpone(
    connection: &mut PgConnection,
    id: &str,
    due_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE payprov_events SET due_at = $2, lease_until = NULL
         WHERE id = $1 AND state = 'waiting'",
        id,
        due_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes up to `limit` events received before `past`, except waiting ones. Returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM payprov_events WHERE id IN (
             SELECT id FROM payprov_events WHERE received_at < $1 AND state <> 'waiting'
             ORDER BY received_at LIMIT $2
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}

/// How many events are not processed yet, for the metrics.
pub async fn waiting(connection: &mut PgConnection) -> Result<QueueLength, sqlx::Error> {
    // In index order, so that nothing else is scanned.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM payprov_events WHERE state = 'waiting' ORDER BY due_at LIMIT 100000
                  ) AS sample) AS "entries!",
                  (SELECT min(due_at) FROM payprov_events WHERE state = 'waiting') AS due_first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(QueueLength::new(row.entries, row.due_first))
}
