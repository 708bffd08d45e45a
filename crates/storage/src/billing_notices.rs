//! The table `billing_notices`: mail to subscribers about their subscription and their API secret, waiting to be sent.

mod due;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{SubscriberId, uuid_at};
use mailgate_types::notice::Notice;

pub use due::{Due, NoticeOutcome, claim, forget, leaves, postpone, record_outcome, waiting};

/// Inserts a notice, due immediately; `false` if this event has already produced one.
pub async fn insert(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    event_id: &str,
    notice: &Notice,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let data = serde_json::to_value(notice).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let inserted = sqlx::query!(
        "INSERT INTO billing_notices
             (id, subscriber_id, kind, event_id, data, created_at, due_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)
         ON CONFLICT ON CONSTRAINT billing_notices_event_key DO NOTHING",
        uuid_at(now),
        subscriber.0,
        notice.kind(),
        event_id,
        data,
        now,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}
