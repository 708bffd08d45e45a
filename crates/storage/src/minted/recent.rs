//! A subscriber's recent apps and webhook configurations: a thief may have left them, and no renewal ends them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use url::Url;

use mailgate_types::ids::{AppId, SubscriberId, WebhookConfigId};

/// Rows that are listed; more are counted.
pub const LISTED: i64 = 100;

/// The youngest, [`LISTED`] at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent<T> {
    /// Youngest first.
    pub listed: Vec<T>,
    /// Their total number.
    pub count: i64,
}

/// An app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentApp {
    /// Its id.
    pub id: AppId,
    /// Its slug.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// A webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentWebhook {
    /// Its id.
    pub id: WebhookConfigId,
    /// Its app's slug.
    pub app_slug: String,
    /// Where it sends events.
    pub url: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

impl RecentWebhook {
    /// The host of its URL; the rest of the URL may contain the receiver's secret.
    #[must_use]
    pub fn host(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(Url::host_str);
        host.unwrap_or_default().to_owned()
    }
}

/// Apps that were created since then, or all.
pub async fn apps(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    since: Option<DateTime<Utc>>,
) -> Result<Recent<RecentApp>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id, slug, name, created_at, count(*) OVER () AS "count!"
           FROM apps
           WHERE subscriber_id = $1 AND created_at >= coalesce($2, '-infinity'::timestamptz)
           ORDER BY created_at DESC, id
           LIMIT $3"#,
        subscriber.0,
        since,
        LISTED,
    )
    .fetch_all(connection)
    .await?;
    Ok(Recent {
        count: rows.first().map_or(0, |row| row.count),
        listed: rows
            .into_iter()
            .map(|row| RecentApp {
                id: AppId(row.id),
                slug: row.slug,
                name: row.name,
                created_at: row.created_at,
            })
            .collect(),
    })
}

/// Webhook configurations that were created or changed since then, or all.
pub async fn webhooks(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    since: Option<DateTime<Utc>>,
) -> Result<Recent<RecentWebhook>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT config.id, slug, url, config.created_at, updated_at, count(*) OVER () AS "count!"
           FROM apps JOIN webhook_configs AS config ON config.app_id = apps.id
           WHERE subscriber_id = $1 AND updated_at >= coalesce($2, '-infinity'::timestamptz)
           ORDER BY updated_at DESC, config.id
           LIMIT $3"#,
        subscriber.0,
        since,
        LISTED,
    )
    .fetch_all(connection)
    .await?;
    Ok(Recent {
        count: rows.first().map_or(0, |row| row.count),
        listed: rows
            .into_iter()
            .map(|row| RecentWebhook {
                id: WebhookConfigId(row.id),
                app_slug: row.slug,
                url: row.url,
                created_at: row.created_at,
                updated_at: row.updated_at,
            })
            .collect(),
    })
}
