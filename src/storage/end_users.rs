//! The table `end_users`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, UserKey, uuid_at};

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
