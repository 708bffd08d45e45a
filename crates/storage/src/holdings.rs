//! Counts a subscriber's mailboxes and end users, such that concurrent additions both count.

use sqlx::PgConnection;

use mailgate_types::ids::AppId;

/// The counts over all apps of a subscriber, including disconnected mailboxes that are still stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holdings {
    /// Mailboxes.
    pub mailboxes: i64,
    /// End users.
    pub end_users: i64,
    /// Its own limit of mailboxes, if the operator has set one.
    pub most_mailboxes: Option<i64>,
    /// The same for end users.
    pub most_end_users: Option<i64>,
}

/// The counts for the subscriber of this app, including additions of the caller's transaction. Until it ends, other
/// calls for the subscriber wait.
pub async fn lock(connection: &mut PgConnection, app: AppId) -> Result<Holdings, sqlx::Error> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('holdings ' || subscriber_id::text, 0))::text AS locked
         FROM apps WHERE id = $1",
        app.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    sqlx::query_as!(
        Holdings,
        r#"WITH whose AS MATERIALIZED (
               SELECT subscribers.id, max_mailboxes, max_end_users
               FROM apps JOIN subscribers ON subscribers.id = subscriber_id WHERE apps.id = $1
           ), own AS MATERIALIZED (
               SELECT id FROM apps WHERE subscriber_id = (SELECT id FROM whose)
           )
           SELECT (SELECT max_mailboxes FROM whose) AS most_mailboxes,
                  (SELECT max_end_users FROM whose) AS most_end_users,
                  (SELECT count(*) FROM mailboxes WHERE app_id IN (SELECT id FROM own)) AS "mailboxes!",
                  (SELECT count(*) FROM end_users WHERE app_id IN (SELECT id FROM own)) AS "end_users!""#,
        app.0,
    )
    .fetch_one(connection)
    .await
}
