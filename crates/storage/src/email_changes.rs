//! The table `email_changes`: unconfirmed changes of a subscriber's address, and those that can be undone. To change
//! one, the caller must have locked the subscriber's row.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::email_change::CONFIRMED_WITHIN;
use mailgate_types::ids::SubscriberId;
use mailgate_types::past::Past;

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailChange {
    /// Its id.
    pub id: Uuid,
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The address that is replaced.
    pub former_email: String,
    /// The address that replaces it.
    pub email: String,
    /// When it was requested.
    pub created_at: DateTime<Utc>,
    /// When the new address became the account's; `None`: it is unconfirmed.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// Whether a link to the former address may restore it.
    pub can_be_undone: bool,
}

impl EmailChange {
    /// Whether it is unconfirmed, and can still be confirmed.
    #[must_use]
    pub fn is_pending(&self, now: DateTime<Utc>) -> bool {
        self.confirmed_at.is_none() && now < self.created_at + CONFIRMED_WITHIN
    }
}

/// Inserts a change.
pub async fn insert(
    connection: &mut PgConnection,
    change: &EmailChange,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO email_changes
             (id, subscriber_id, former_email, former_is_confirmed, email, created_at, confirmed_at,
              can_be_undone)
         SELECT $1, id, $3, confirmed_email IS NOT DISTINCT FROM email, $4, $5, $6, $7
         FROM subscribers WHERE id = $2",
        change.id,
        change.subscriber.0,
        change.former_email,
        change.email,
        change.created_at,
        change.confirmed_at,
        change.can_be_undone,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A change that hasn't been replaced, cancelled or undone, of a subscriber that isn't deleted.
pub async fn find(
    connection: &mut PgConnection,
    id: Uuid,
) -> Result<Option<EmailChange>, sqlx::Error> {
    sqlx::query_as!(
        EmailChange,
        "SELECT id, subscriber_id AS subscriber, former_email, email, created_at, confirmed_at, can_be_undone
         FROM email_changes
         WHERE id = $1 AND ended_at IS NULL AND EXISTS (
             SELECT FROM subscribers WHERE id = subscriber_id AND deletion_due_at IS NULL
         )",
        id,
    )
    .fetch_optional(connection)
    .await
}

/// The number of a subscriber's latest changes that are read. If changes are mailed there are far fewer.
const LISTED: i64 = 1_000;

/// A subscriber's changes that haven't been replaced, cancelled or undone, oldest first.
pub async fn of_subscriber(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<EmailChange>, sqlx::Error> {
    sqlx::query_as!(
        EmailChange,
        "SELECT id, subscriber_id AS subscriber, former_email, email, created_at, confirmed_at, can_be_undone
         FROM (SELECT * FROM email_changes WHERE subscriber_id = $1 AND ended_at IS NULL
               ORDER BY number DESC LIMIT $2) AS latest
         ORDER BY number",
        subscriber.0,
        LISTED,
    )
    .fetch_all(connection)
    .await
}

/// When the oldest of a subscriber's last `most` changes was requested, if there have been that many since `since`.
pub async fn oldest_of_last(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    since: DateTime<Utc>,
    most: i64,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT created_at FROM email_changes WHERE subscriber_id = $1 AND created_at > $2
         ORDER BY created_at DESC OFFSET $3 LIMIT 1",
        subscriber.0,
        since,
        most - 1,
    )
    .fetch_optional(connection)
    .await
}

/// Records that the new address is the account's, and whether a link to the former one can undo that.
pub async fn confirm(
    connection: &mut PgConnection,
    id: Uuid,
    can_be_undone: bool,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE email_changes SET confirmed_at = $2, can_be_undone = $3 WHERE id = $1",
        id,
        now,
        can_be_undone,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends a subscriber's unconfirmed change, if there is one.
pub async fn end_pending(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE email_changes SET ended_at = $2
         WHERE subscriber_id = $1 AND confirmed_at IS NULL AND ended_at IS NULL",
        subscriber.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends all of a subscriber's changes.
pub async fn end_all(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE email_changes SET ended_at = $2 WHERE subscriber_id = $1 AND ended_at IS NULL",
        subscriber.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends a change and all later ones.
pub async fn end_from(
    connection: &mut PgConnection,
    change: &EmailChange,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE email_changes SET ended_at = $3
         WHERE subscriber_id = $1 AND ended_at IS NULL
               AND number >= (SELECT number FROM email_changes WHERE id = $2)",
        change.subscriber.0,
        change.id,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Restores the address from before a change; it is confirmed if it was before.
pub async fn restore(connection: &mut PgConnection, id: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers
         SET email = former_email, confirmed_email = CASE WHEN former_is_confirmed THEN former_email END
         FROM email_changes AS change
         WHERE change.id = $1 AND subscribers.id = change.subscriber_id",
        id,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes changes that were requested by `past`, `limit` at most, and returns how many. Several replicas may do it at
/// the same time.
pub async fn remove_lapsed(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM email_changes WHERE id IN (
             SELECT id FROM email_changes WHERE created_at <= $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
