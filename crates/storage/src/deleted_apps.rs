//! The table `deleted_apps`, and the log rows and webhooks of the apps in it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, SubscriberId};
use mailgate_types::past::Past;

/// Marks the log rows of an app, which still exists, for removal.
pub async fn insert(
    connection: &mut PgConnection,
    app: AppId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO deleted_apps (app_id, subscriber_id, deleted_at)
         SELECT id, subscriber_id, $2 FROM apps WHERE id = $1
         ON CONFLICT DO NOTHING",
        app.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The apps with remaining data to be removed.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<AppId>, sqlx::Error> {
    let ids: Vec<Uuid> = sqlx::query_scalar!("SELECT app_id FROM deleted_apps ORDER BY deleted_at")
        .fetch_all(connection)
        .await?;
    Ok(ids.into_iter().map(AppId).collect())
}

/// The deleted apps of a subscriber.
pub async fn of_subscriber(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<AppId>, sqlx::Error> {
    let ids: Vec<Uuid> = sqlx::query_scalar!(
        "SELECT app_id FROM deleted_apps WHERE subscriber_id = $1",
        subscriber.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(AppId).collect())
}

/// The number of an app's log rows that are still to be removed, counted up to `most`.
pub async fn logs_left(
    connection: &mut PgConnection,
    app: AppId,
    most: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (SELECT FROM email_logs WHERE app_id = $1 LIMIT $2) AS log"#,
        app.0,
        most,
    )
    .fetch_one(connection)
    .await
}

/// Removes up to `limit` log rows of an app; returns how many there were.
pub async fn remove_logs(
    connection: &mut PgConnection,
    app: AppId,
    limit: i64,
) -> Result<usize, sqlx::Error> {
    let removed = sqlx::query!(
        "WITH removed AS (
             DELETE FROM email_logs
             WHERE id IN (SELECT id FROM email_logs WHERE app_id = $1 LIMIT $2)
             RETURNING id
         ), forgotten AS (
             DELETE FROM email_attempts USING removed WHERE log_id = removed.id
         ), unbounced AS (
             DELETE FROM bounces WHERE log_id IN (SELECT id FROM removed)
         ), unanswered AS (
             DELETE FROM message_replies WHERE log_id IN (SELECT id FROM removed)
         )
         SELECT id FROM removed",
        app.0,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(removed.len())
}

/// The result of a round of [`remove_webhooks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhooksLeft {
    /// None are left.
    None,
    /// Some may be left that can be removed.
    Some,
    /// All that were examined are still to be delivered.
    Queued,
}

/// Removes up to `limit` webhook messages of an app with their deliveries, except those that are still to be
/// delivered.
pub async fn remove_webhooks(
    connection: &mut PgConnection,
    app: AppId,
    limit: i64,
) -> Result<WebhooksLeft, sqlx::Error> {
    let round = sqlx::query!(
        r#"WITH looked_at AS (
               SELECT id FROM webhook_messages WHERE app_id = $1 ORDER BY id LIMIT $2
           ), told AS (
               SELECT id FROM looked_at
               WHERE NOT EXISTS (SELECT FROM webhook_queue WHERE message_id = looked_at.id)
           ), removed AS (
               DELETE FROM webhook_messages AS message USING told
               WHERE app_id = $1 AND message.id = told.id
           ), forgotten AS (
               DELETE FROM webhook_deliveries USING told WHERE message_id = told.id
           )
           SELECT EXISTS (SELECT FROM looked_at) AS "found!", EXISTS (SELECT FROM told) AS "removed!""#,
        app.0,
        limit,
    )
    .fetch_one(connection)
    .await?;
    Ok(match (round.found, round.removed) {
        (false, _) => WebhooksLeft::None,
        (true, true) => WebhooksLeft::Some,
        (true, false) => WebhooksLeft::Queued,
    })
}

/// Removes an app's webhook counters and idempotency keys.
pub async fn remove_counters(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM webhook_counters WHERE app_id = $1", app.0)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("DELETE FROM idempotency_keys WHERE app_id = $1", app.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes an app from the table if it was deleted before `past`.
pub async fn forget(
    connection: &mut PgConnection,
    app: AppId,
    past: Past,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM deleted_apps WHERE app_id = $1 AND deleted_at < $2",
        app.0,
        past.moment(),
    )
    .execute(connection)
    .await?;
    Ok(())
}
