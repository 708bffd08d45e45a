//! The table `end_users`.
//!
//! The trigger `end_users_change` (migration 0020), deferred to the commit, raises the version of the user's app.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, CredentialId, SubscriberId, UserKey, uuid_at};

/// An end user for whom a mailbox is connected.
#[derive(Debug)]
pub struct EndUser {
    /// The key.
    pub key: UserKey,
    /// Whether a mailbox of the user was connected by a connect session since the app last released them.
    pub is_vouched: bool,
}

/// An app's end user, who is created if new. `user_id` is the app's own name for the user; `None` is the only user of an
/// app without multiuser. With `by_session` this records that a connect session has connected a mailbox; also if the
/// previous release has connected one by a session, which it recorded only with the mailbox.
pub async fn find_or_insert(
    connection: &mut PgConnection,
    app: AppId,
    user_id: Option<&str>,
    by_session: bool,
    now: DateTime<Utc>,
) -> Result<EndUser, sqlx::Error> {
    let row = sqlx::query!(
        r#"INSERT INTO end_users (user_key, app_id, user_id, created_at, vouched_at)
         VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN $4::timestamptz END)
         ON CONFLICT ON CONSTRAINT end_users_app_user_key
         DO UPDATE SET vouched_at = coalesce(
             end_users.vouched_at, EXCLUDED.vouched_at,
             (SELECT $4::timestamptz WHERE EXISTS (
                  SELECT FROM mailboxes WHERE mailboxes.user_key = end_users.user_key AND by_session)))
         RETURNING user_key, vouched_at IS NOT NULL AS "is_vouched!""#,
        uuid_at(now),
        app.0,
        user_id,
        now,
        by_session,
    )
    .fetch_one(connection)
    .await?;
    Ok(EndUser {
        key: UserKey(row.user_key),
        is_vouched: row.is_vouched,
    })
}

/// The app's own name for one of its end users; `None` if the app has no such user.
pub async fn find(
    connection: &mut PgConnection,
    app: AppId,
    user: UserKey,
) -> Result<Option<Option<String>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT user_id FROM end_users WHERE app_id = $1 AND user_key = $2",
        app.0,
        user.0,
    )
    .fetch_optional(connection)
    .await
}

/// Clears the record of connect sessions of a user; `false` if there was none.
pub async fn release(connection: &mut PgConnection, user: UserKey) -> Result<bool, sqlx::Error> {
    let mailboxes = sqlx::query!(
        "UPDATE mailboxes SET by_session = false WHERE user_key = $1 AND by_session",
        user.0,
    )
    .execute(&mut *connection)
    .await?;
    let users = sqlx::query!(
        "UPDATE end_users SET vouched_at = NULL WHERE user_key = $1 AND vouched_at IS NOT NULL",
        user.0,
    )
    .execute(connection)
    .await?;
    Ok(mailboxes.rows_affected() + users.rows_affected() > 0)
}

/// Removes the users among these who have no mailbox, and never had one connected by a connect session.
pub async fn remove_unused(
    connection: &mut PgConnection,
    users: &[UserKey],
) -> Result<(), sqlx::Error> {
    let users: Vec<Uuid> = users.iter().map(|user| user.0).collect();
    sqlx::query!(
        "DELETE FROM end_users
         WHERE user_key = ANY ($1) AND vouched_at IS NULL
               AND NOT EXISTS (SELECT FROM mailboxes WHERE mailboxes.user_key = end_users.user_key)",
        &users,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The end users that a name refers to in a subscriber's apps: the one with this key, or else those with this name in
/// the apps, as in sending.
pub async fn named(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    name: &str,
) -> Result<Vec<UserKey>, sqlx::Error> {
    let key: Option<Uuid> = name.parse().ok();
    let found = sqlx::query_scalar!(
        "SELECT user_key
         FROM apps JOIN end_users ON end_users.app_id = apps.id
         WHERE subscriber_id = $1
               AND (user_key = $3
                    OR user_id = $2 AND NOT EXISTS (SELECT FROM end_users AS other
                                                    WHERE other.app_id = apps.id AND other.user_key = $3))",
        subscriber.0,
        name,
        key,
    )
    .fetch_all(connection)
    .await?;
    Ok(found.into_iter().map(UserKey).collect())
}

/// Up to `limit` mailboxes of these users, connected or not.
pub async fn mailboxes(
    connection: &mut PgConnection,
    users: &[UserKey],
    limit: i64,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let users: Vec<Uuid> = users.iter().map(|user| user.0).collect();
    let found = sqlx::query_scalar!(
        "SELECT id FROM mailboxes WHERE user_key = ANY($1) LIMIT $2",
        &users,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(found.into_iter().map(CredentialId).collect())
}
