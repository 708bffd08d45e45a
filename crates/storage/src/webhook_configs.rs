//! The table `webhook_configs`: the endpoints that a subscriber configures for an app. Events are matched to
//! endpoints where they are written (`webhook_messages`, `journal`).
//!
//! The trigger `webhook_configs_go` (migration 0027) keeps a deleted endpoint's secret for its last deliveries
//! (`signing_secrets`).

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use super::signing_secrets::SealedSecrets;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, SubscriberId, WebhookConfigId};

/// A configuration.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// Its id.
    pub id: WebhookConfigId,
    /// The app whose events it receives.
    pub app: AppId,
    /// The endpoint's URL.
    pub url: String,
    /// The events that it receives.
    pub events: Vec<EventName>,
    /// Whether it is active.
    pub is_active: bool,
    /// The signing secrets, sealed.
    pub secrets: SealedSecrets,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// The configuration of a row that has its columns.
macro_rules! config_of {
    ($row:ident) => {
        WebhookConfig {
            id: WebhookConfigId($row.id),
            app: AppId($row.app_id),
            url: $row.url,
            events: $row.events,
            is_active: $row.is_active,
            secrets: SealedSecrets::new(
                $row.secret_sealed,
                $row.previous_secret_sealed,
                $row.previous_secret_expires_at,
            ),
            created_at: $row.created_at,
            updated_at: $row.updated_at,
        }
    };
}

/// Event names as stored.
fn names(events: &[EventName]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

/// The number of an app's configurations.
pub async fn count(connection: &mut PgConnection, app: AppId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM webhook_configs WHERE app_id = $1"#,
        app.0,
    )
    .fetch_one(connection)
    .await
}

/// Inserts a configuration.
pub async fn insert(
    connection: &mut PgConnection,
    config: &WebhookConfig,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO webhook_configs
             (id, app_id, url, events, is_active, secret_sealed, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        config.id.0,
        config.app.0,
        config.url,
        &names(&config.events),
        config.is_active,
        config.secrets.current,
        config.created_at,
        config.updated_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// One configuration of an app.
pub async fn find(
    connection: &mut PgConnection,
    app: AppId,
    id: WebhookConfigId,
) -> Result<Option<WebhookConfig>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT id, app_id, url, events AS "events: Vec<EventName>", is_active, secret_sealed,
                  previous_secret_sealed, previous_secret_expires_at, created_at, updated_at
           FROM webhook_configs WHERE app_id = $1 AND id = $2"#,
        app.0,
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| config_of!(row)))
}

/// Whether an app of the subscriber has an endpoint: a configuration, or a `webhook_url` of its own.
pub async fn has_any(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM apps
               WHERE subscriber_id = $1
                     AND (webhook_url <> ''
                          OR EXISTS (SELECT FROM webhook_configs WHERE app_id = apps.id))
           ) AS "exists!""#,
        subscriber.0,
    )
    .fetch_one(connection)
    .await
}

/// A configuration, with its delivery statistics.
#[derive(Debug, Clone)]
pub struct ListedConfig {
    /// The configuration.
    pub config: WebhookConfig,
    /// When the last delivery attempt began; `None` if none is kept.
    pub last_triggered_at: Option<DateTime<Utc>>,
    /// The number of attempts to deliver events of the requested period.
    pub attempts: i64,
    /// The number of successful ones.
    pub successes: i64,
}

/// An app's configurations, oldest first, with the number of attempts to deliver events from `since` on.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
    since: DateTime<Utc>,
) -> Result<Vec<ListedConfig>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id, app_id, url, events AS "events: Vec<EventName>", is_active, secret_sealed,
                  previous_secret_sealed, previous_secret_expires_at, created_at, updated_at,
                  (SELECT delivered_at FROM webhook_deliveries
                   WHERE endpoint_id = config.id AND event <> 'test'
                   ORDER BY webhook_deliveries.id DESC LIMIT 1) AS last_triggered_at,
                  coalesce(attempts, 0) AS "attempts!", coalesce(successes, 0) AS "successes!"
           FROM webhook_configs AS config
                CROSS JOIN LATERAL (
                    SELECT sum(deliveries)::bigint AS attempts,
                           (sum(deliveries) FILTER (WHERE success))::bigint AS successes
                    FROM webhook_counters
                    WHERE endpoint_id = config.id AND hour >= $2 AND event <> 'test'
                ) AS counted
           WHERE app_id = $1
           ORDER BY id"#,
        app.0,
        since,
    )
    .fetch_all(connection)
    .await?;
    let configs = rows.into_iter().map(|row| ListedConfig {
        last_triggered_at: row.last_triggered_at,
        attempts: row.attempts,
        successes: row.successes,
        config: config_of!(row),
    });
    Ok(configs.collect())
}

/// Changes to a configuration; `None` leaves a field as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct WebhookConfigChange {
    /// The endpoint's URL.
    pub url: Option<String>,
    /// The events that it receives.
    pub events: Option<Vec<EventName>>,
    /// Whether it is active.
    pub is_active: Option<bool>,
}

/// Changes a configuration and returns its new state; `None` if the app has none with this id.
pub async fn update(
    connection: &mut PgConnection,
    app: AppId,
    id: WebhookConfigId,
    change: &WebhookConfigChange,
    now: DateTime<Utc>,
) -> Result<Option<WebhookConfig>, sqlx::Error> {
    let events = change.events.as_deref().map(names);
    let row = sqlx::query!(
        r#"UPDATE webhook_configs
           SET url = coalesce($3, url), events = coalesce($4, events),
               is_active = coalesce($5, is_active), updated_at = $6
           WHERE app_id = $1 AND id = $2
           RETURNING id, app_id, url, events AS "events: Vec<EventName>", is_active, secret_sealed,
                     previous_secret_sealed, previous_secret_expires_at, created_at, updated_at"#,
        app.0,
        id.0,
        change.url,
        events.as_deref(),
        change.is_active,
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| config_of!(row)))
}

/// Replaces a configuration's secret; the previous one also signs until `expires_at`. Returns the new state; `None` if
/// the app has none with this id.
pub async fn rotate_secret(
    connection: &mut PgConnection,
    app: AppId,
    id: WebhookConfigId,
    sealed: &[u8],
    expires_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Option<WebhookConfig>, sqlx::Error> {
    let row = sqlx::query!(
        r#"UPDATE webhook_configs
           SET secret_sealed = $3, previous_secret_sealed = secret_sealed,
               previous_secret_expires_at = $4, updated_at = $5
           WHERE app_id = $1 AND id = $2
           RETURNING id, app_id, url, events AS "events: Vec<EventName>", is_active, secret_sealed,
                     previous_secret_sealed, previous_secret_expires_at, created_at, updated_at"#,
        app.0,
        id.0,
        sealed,
        expires_at,
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| config_of!(row)))
}

/// Deletes a configuration and returns its URL; `None` if the app has none with this id.
pub async fn delete(
    connection: &mut PgConnection,
    app: AppId,
    id: WebhookConfigId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "DELETE FROM webhook_configs WHERE app_id = $1 AND id = $2 RETURNING url",
        app.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
}
