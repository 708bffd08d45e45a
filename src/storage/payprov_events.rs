//! The table `payprov_events`: what the payment provider has told.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::waiting::Waiting;

/// An event as it is kept: what it tells of is fetched anew.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// The provider's own id.
    pub id: String,
    /// `invoice.payment_failed` and its like.
    pub kind: String,
    /// The customer that it tells of.
    pub customer_id: Option<String>,
    /// The subscription that it tells of.
    pub subscription_id: Option<String>,
    /// The invoice that it tells of.
    pub invoice_id: Option<String>,
    /// How often it was taken up, this time included.
    pub attempts: i32,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// It was looked into.
    Applied,
    /// It tells of nothing that matters here.
    Ignored,
    /// Nobody could look into it.
    Failed,
}

impl EventState {
    /// The word that it is stored under.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Ignored => "ignored",
            Self::Failed => "failed",
        }
    }
}

/// Keeps an event, to be looked into immediately. `false` when it has come before.
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

/// Takes up some events that wait, those that are due longest first, for as long as it is from `now` to
/// `lease_until`: by the database's clock.
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

/// Notes what became of an event.
pub async fn settle(
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

/// Puts an event off that nobody could look into.
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

/// Forgets some events that came before `before`; those that wait are kept. Answers how many.
pub async fn forget(
    connection: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM payprov_events WHERE id IN (
             SELECT id FROM payprov_events WHERE received_at < $1 AND state <> 'waiting'
             ORDER BY received_at LIMIT $2
         )",
        before,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}

/// How many events nobody has looked into, for the metrics.
pub async fn waiting(connection: &mut PgConnection) -> Result<Waiting, sqlx::Error> {
    // In the order of the index, so that nothing else is gone through.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM payprov_events WHERE state = 'waiting' ORDER BY due_at LIMIT 100000
                  ) AS sample) AS "entries!",
                  (SELECT min(due_at) FROM payprov_events WHERE state = 'waiting') AS due_first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(Waiting::new(row.entries, row.due_first))
}
