//! Credentials created with a subscriber's API secrets, present and former.

pub mod recent;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{ApiSecretId, AppId, SendKeyId, SubscriberId};

/// An additional API secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintedApiSecret {
    /// Its id.
    pub id: ApiSecretId,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// An additional send key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintedSendKey {
    /// Its id.
    pub id: SendKeyId,
    /// Its app.
    pub app: AppId,
    /// The app's slug.
    pub app_slug: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// A subscriber's additional API secrets.
pub async fn api_secrets(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<MintedApiSecret>, sqlx::Error> {
    sqlx::query_as!(
        MintedApiSecret,
        "SELECT id, name, created_at FROM api_secrets WHERE subscriber_id = $1 ORDER BY id",
        subscriber.0,
    )
    .fetch_all(connection)
    .await
}

/// The additional send keys of a subscriber's apps.
pub async fn send_keys(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<MintedSendKey>, sqlx::Error> {
    sqlx::query_as!(
        MintedSendKey,
        "SELECT send_keys.id, app_id AS app, slug AS app_slug, send_keys.name, send_keys.created_at
         FROM apps JOIN send_keys ON send_keys.app_id = apps.id
         WHERE subscriber_id = $1
         ORDER BY app_id, send_keys.id",
        subscriber.0,
    )
    .fetch_all(connection)
    .await
}

/// Portal sessions and unused sign-in links of a subscriber.
pub async fn portal_access(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(i64, i64), sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM portal_sessions
                   WHERE subscriber_id = $1 AND expires_at > $2) AS "sessions!",
                  (SELECT count(*) FROM portal_links
                   WHERE subscriber_id = $1 AND expires_at > $2 AND used_at IS NULL) AS "links!""#,
        subscriber.0,
        now,
    )
    .fetch_one(connection)
    .await?;
    Ok((row.sessions, row.links))
}

/// Ends the connect sessions that the apps of a subscriber, which the caller has locked, created before `now`.
pub async fn end_connect_sessions(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE apps SET connect_sessions_from = greatest($2, connect_sessions_from)
         WHERE subscriber_id = $1",
        subscriber.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}
