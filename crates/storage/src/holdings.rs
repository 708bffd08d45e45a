//! How much a subscriber has, counted so that two who add to it at the same time both count.

use sqlx::PgConnection;

use mailgate_types::ids::AppId;

/// What all apps of a subscriber have, ended or not: what is remembered counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holdings {
    /// Mailboxes.
    pub mailboxes: i64,
    /// End users.
    pub end_users: i64,
    /// The mailboxes that it may have, if the operator has set a limit of its own.
    pub most_mailboxes: Option<i64>,
    /// The same of the end users.
    pub most_end_users: Option<i64>,
}

/// What the apps of this app's subscriber have, with what the caller's transaction has added. Until it ends, other calls
/// for the subscriber wait.
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
