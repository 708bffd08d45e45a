//! The table `mailboxes`: those that were disconnected long ago, which are removed.

use sqlx::PgConnection;

use crate::end_users;
use mailgate_types::ids::{AppId, UserKey};
use mailgate_types::past::Past;
use mailgate_types::plugin::Plugin;

/// The app of the provider's mailbox that was disconnected first, if that was before `past`.
pub async fn first(
    connection: &mut PgConnection,
    plugin: Plugin,
    past: Past,
) -> Result<Option<AppId>, sqlx::Error> {
    let app = sqlx::query_scalar!(
        "SELECT app_id FROM mailboxes
         WHERE plugin = $1 AND status <> 'active' AND disconnected_at < $2
         ORDER BY plugin, disconnected_at LIMIT 1",
        plugin.as_str(),
        past.moment(),
    )
    .fetch_optional(connection)
    .await?;
    Ok(app.map(AppId))
}

/// Removes up to `limit` mailboxes of an app that were disconnected before `past`, and the users left without any,
/// unless they have had a connect session; returns the number of mailboxes. The caller keeps the app, so that none is
/// connected meanwhile.
pub async fn remove(
    connection: &mut PgConnection,
    app: AppId,
    past: Past,
    limit: i64,
) -> Result<usize, sqlx::Error> {
    let users = sqlx::query_scalar!(
        "DELETE FROM mailboxes WHERE id = ANY (ARRAY(
             SELECT id FROM mailboxes
             WHERE app_id = $1 AND status <> 'active' AND disconnected_at < $2
             LIMIT $3 FOR UPDATE
         ))
         RETURNING user_key",
        app.0,
        past.moment(),
        limit,
    )
    .fetch_all(&mut *connection)
    .await?;
    // A separate statement, so that it sees the removal of the mailboxes.
    let users: Vec<UserKey> = users.into_iter().map(UserKey).collect();
    end_users::remove_unused(connection, &users).await?;
    Ok(users.len())
}
