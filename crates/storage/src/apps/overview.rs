//! The apps of all subscribers, for the operator. No secrets are read.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, SubscriberId};

/// An app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppOverview {
    /// The app.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// The name that the subscriber gave it.
    pub name: String,
    /// Its subscriber.
    pub subscriber: SubscriberId,
    /// Connected mailboxes.
    pub mailboxes: i64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// Up to `limit` apps, oldest first, of all subscribers or of one.
pub async fn overview(
    connection: &mut PgConnection,
    subscriber: Option<SubscriberId>,
    limit: i64,
    offset: i64,
) -> Result<Vec<AppOverview>, sqlx::Error> {
    sqlx::query_as!(
        AppOverview,
        r#"SELECT id, slug, name, subscriber_id AS subscriber, created_at,
                  (SELECT count(*) FROM mailboxes
                   WHERE app_id = apps.id AND status = 'active') AS "mailboxes!"
           FROM apps WHERE $1::uuid IS NULL OR subscriber_id = $1
           ORDER BY id LIMIT $2 OFFSET $3"#,
        subscriber.map(|subscriber| subscriber.0),
        limit,
        offset,
    )
    .fetch_all(connection)
    .await
}
