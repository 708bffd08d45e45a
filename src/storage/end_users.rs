//! The table `end_users`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, CredentialId, SubscriberId, UserKey, uuid_at};

/// The key of an app's end user, who is created if new. `user_id` is the app's own name for the user; `None` is the
/// only user of an app without multiuser.
pub async fn find_or_insert(
    connection: &mut PgConnection,
    app: AppId,
    user_id: Option<&str>,
    now: DateTime<Utc>,
) -> Result<UserKey, sqlx::Error> {
    // The update changes nothing; it makes RETURNING include an existing row.
    let user_key = sqlx::query_scalar!(
        "INSERT INTO end_users (user_key, app_id, user_id, created_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT ON CONSTRAINT end_users_app_user_key
         DO UPDATE SET user_id = EXCLUDED.user_id
         RETURNING user_key",
        uuid_at(now),
        app.0,
        user_id,
        now,
    )
    .fetch_one(connection)
    .await?;
    Ok(UserKey(user_key))
}

/// The end users that a name stands for in a subscriber's apps: the one with this key, or else those whom the apps
/// call so, as in sending.
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
