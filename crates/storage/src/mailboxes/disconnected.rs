//! Mailboxes that their users have to reconnect.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, CredentialId, SubscriberId};

/// A mailbox that the provider refuses.
#[derive(Debug, Clone)]
pub struct DisconnectedMailbox {
    /// The mailbox.
    pub id: CredentialId,
    /// Its app's name.
    pub app_name: String,
    /// Its address.
    pub email: String,
    /// The reason in `user.disconnected`.
    pub reason: String,
    /// When it was disconnected.
    pub at: DateTime<Utc>,
}

/// Up to `limit` mailboxes of a subscriber, or of one of its apps, that were disconnected since then; the latest first.
/// Excludes those that the subscriber or another mailbox has ended.
pub async fn disconnected(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    app: Option<AppId>,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<DisconnectedMailbox>, sqlx::Error> {
    sqlx::query_as!(
        DisconnectedMailbox,
        r#"SELECT last.id, apps.name AS app_name, last.email, last.disconnect_reason AS "reason!",
                  last.disconnected_at AS "at!"
           FROM apps CROSS JOIN LATERAL (
                    SELECT id, email, disconnect_reason, disconnected_at FROM mailboxes
                    WHERE app_id = apps.id AND status <> 'active' AND disconnected_at >= $3
                          AND disconnect_reason NOT IN ('removed', 'replaced')
                    ORDER BY disconnected_at DESC LIMIT $4
                ) AS last
           WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR apps.id = $2)
           ORDER BY last.disconnected_at DESC LIMIT $4"#,
        subscriber.0,
        app.map(|app| app.0),
        since,
        limit,
    )
    .fetch_all(connection)
    .await
}
