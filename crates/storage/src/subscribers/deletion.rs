//! Subscribers that the operator has deleted: for a time they can be restored.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;
use mailgate_types::past::Past;

/// When a deleted subscriber is removed; `None` for others.
pub async fn due_at(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    let due_at = sqlx::query_scalar!(
        "SELECT deletion_due_at FROM subscribers WHERE id = $1",
        id.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(due_at.flatten())
}

/// Marks a subscriber as deleted, to be removed at `due_at`, or with `None` as restored.
pub async fn mark(
    connection: &mut PgConnection,
    id: SubscriberId,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET deletion_due_at = $2 WHERE id = $1",
        id.0,
        due_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Up to `limit` deleted subscribers that were due for removal by `past`, in id order, `after` this one.
pub async fn due(
    connection: &mut PgConnection,
    past: Past,
    after: Option<SubscriberId>,
    limit: i64,
) -> Result<Vec<SubscriberId>, sqlx::Error> {
    let due = sqlx::query_scalar!(
        "SELECT id FROM subscribers
         WHERE deletion_due_at <= $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3",
        past.moment(),
        after.map(|id| id.0),
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(due.into_iter().map(SubscriberId).collect())
}

/// Records whether the subscription doesn't renew because its subscriber is deleted.
pub async fn note_renewal_stopped(
    connection: &mut PgConnection,
    id: SubscriberId,
    is_stopped: bool,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET renewal_stopped = $2 WHERE id = $1",
        id.0,
        is_stopped,
    )
    .execute(connection)
    .await?;
    Ok(())
}
