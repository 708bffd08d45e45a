//! The endpoints of a subscriber, over all apps: their own `webhook_url`s and their configurations, with their delivery
//! attempts by day.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, EndpointId, SubscriberId};

/// An endpoint.
#[derive(Debug, Clone)]
pub struct OwnedEndpoint {
    /// Its id.
    pub id: EndpointId,
    /// The app whose events it receives.
    pub app: AppId,
    /// The app's slug.
    pub slug: String,
    /// The app's name.
    pub app_name: String,
    /// The app's `pk_…`.
    pub pushable_key: String,
    /// Its URL.
    pub url: String,
    /// The events that it receives; empty for an app's own `webhook_url`, which receives all.
    pub events: Vec<EventName>,
    /// Whether it receives new events.
    pub is_active: bool,
    /// When the previous secret expires, or has expired.
    pub previous_secret_expires_at: Option<DateTime<Utc>>,
    /// When the last delivery attempt began; `None` if none is kept.
    pub last_triggered_at: Option<DateTime<Utc>>,
}

/// A subscriber's endpoints, by app, its own `webhook_url` first; with `slug`, those of this app.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    slug: Option<&str>,
    limit: i64,
    offset: i64,
) -> Result<Vec<OwnedEndpoint>, sqlx::Error> {
    sqlx::query_as!(
        OwnedEndpoint,
        r#"SELECT endpoint.id AS "id!", app_id AS "app!", slug AS "slug!",
                  app_name AS "app_name!", pushable_key AS "pushable_key!", url AS "url!",
                  events AS "events!: Vec<EventName>", is_active AS "is_active!", previous_secret_expires_at,
                  (SELECT delivered_at FROM webhook_deliveries
                   WHERE endpoint_id = endpoint.id AND event <> 'test'
                   ORDER BY webhook_deliveries.id DESC LIMIT 1) AS last_triggered_at
           FROM (
               SELECT id, id AS app_id, slug, name AS app_name, pushable_key, webhook_url AS url,
                      ARRAY[]::text[] AS events, true AS is_active,
                      previous_webhook_secret_expires_at AS previous_secret_expires_at
               FROM apps
               WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2) AND webhook_url <> ''
               UNION ALL
               SELECT config.id, app_id, slug, name, pushable_key, url, events, is_active,
                      previous_secret_expires_at
               FROM webhook_configs AS config JOIN apps ON apps.id = app_id
               WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2)
           ) AS endpoint
           ORDER BY slug, endpoint.id <> app_id, endpoint.id LIMIT $3 OFFSET $4"#,
        subscriber.0,
        slug,
        limit,
        offset,
    )
    .fetch_all(connection)
    .await
}

/// One endpoint; another subscriber's is not found, nor is a
/// `webhook_url` that is empty and to which nothing was delivered.
pub async fn find(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: EndpointId,
) -> Result<Option<OwnedEndpoint>, sqlx::Error> {
    sqlx::query_as!(
        OwnedEndpoint,
        r#"SELECT endpoint.id AS "id!", app_id AS "app!", slug AS "slug!",
                  app_name AS "app_name!", pushable_key AS "pushable_key!", url AS "url!",
                  events AS "events!: Vec<EventName>", is_active AS "is_active!", previous_secret_expires_at,
                  (SELECT delivered_at FROM webhook_deliveries
                   WHERE endpoint_id = endpoint.id AND event <> 'test'
                   ORDER BY webhook_deliveries.id DESC LIMIT 1) AS last_triggered_at
           FROM (
               SELECT id, id AS app_id, slug, name AS app_name, pushable_key, webhook_url AS url,
                      ARRAY[]::text[] AS events, webhook_url <> '' AS is_active,
                      previous_webhook_secret_expires_at AS previous_secret_expires_at
               FROM apps WHERE id = $2 AND subscriber_id = $1
                   AND (webhook_url <> ''
                        OR EXISTS (SELECT FROM webhook_deliveries WHERE endpoint_id = $2))
               UNION ALL
               SELECT config.id, app_id, slug, name, pushable_key, url, events, is_active,
                      previous_secret_expires_at
               FROM webhook_configs AS config JOIN apps ON apps.id = app_id
               WHERE config.id = $2 AND subscriber_id = $1
           ) AS endpoint"#,
        subscriber.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// The attempts of a day (UTC) to deliver to an endpoint; tests aren't counted.
#[derive(Debug, Clone, Copy)]
pub struct DayCount {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The day.
    pub day: NaiveDate,
    /// Accepted by the receiver.
    pub successes: i64,
    /// Failed.
    pub failures: i64,
    /// Attempts from `recent` on.
    pub recent: i64,
    /// Those of them that failed.
    pub recent_failures: i64,
}

/// The attempts to deliver events from `since` on, by endpoint and day; days without any are left out.
pub async fn by_day(
    connection: &mut PgConnection,
    endpoints: &[EndpointId],
    since: DateTime<Utc>,
    recent: DateTime<Utc>,
) -> Result<Vec<DayCount>, sqlx::Error> {
    let ids: Vec<Uuid> = endpoints.iter().map(|endpoint| endpoint.0).collect();
    sqlx::query_as!(
        DayCount,
        r#"SELECT endpoint_id AS endpoint, (hour AT TIME ZONE 'UTC')::date AS "day!",
                  coalesce(sum(deliveries) FILTER (WHERE success), 0)::bigint AS "successes!",
                  coalesce(sum(deliveries) FILTER (WHERE NOT success), 0)::bigint AS "failures!",
                  coalesce(sum(deliveries) FILTER (WHERE hour >= $3), 0)::bigint AS "recent!",
                  coalesce(sum(deliveries) FILTER (WHERE hour >= $3 AND NOT success), 0)::bigint
                      AS "recent_failures!"
           FROM webhook_counters
           WHERE endpoint_id = ANY($1) AND hour >= $2 AND event <> 'test'
           GROUP BY 1, 2"#,
        &ids,
        since,
        recent,
    )
    .fetch_all(connection)
    .await
}
