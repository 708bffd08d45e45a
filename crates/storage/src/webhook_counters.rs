//! The table `webhook_counters`: delivery attempts by endpoint, hour, event and success. They are counted along with
//! the attempts' rows (`webhook_queue::record`).

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, EndpointId, SubscriberId};
use mailgate_types::past::Past;

/// An endpoint that doesn't accept its deliveries.
#[derive(Debug, Clone)]
pub struct FailingEndpoint {
    /// Its id.
    pub id: EndpointId,
    /// Its app.
    pub app: AppId,
    /// Its app's name.
    pub app_name: String,
    /// Its address.
    pub url: String,
    /// Delivery attempts.
    pub attempts: i64,
    /// Those that failed.
    pub failures: i64,
}

/// Up to `limit` endpoints of a subscriber, or of one of its apps, at which at least half of the attempts since then
/// have failed; those with the most failures first.
pub async fn failing(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    app: Option<AppId>,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<FailingEndpoint>, sqlx::Error> {
    sqlx::query_as!(
        FailingEndpoint,
        r#"SELECT endpoint.id AS "id!", apps.id AS app, apps.name AS app_name, endpoint.url AS "url!", attempts AS "attempts!",
                  failures AS "failures!"
           FROM apps
                CROSS JOIN LATERAL (
                    SELECT id, url FROM webhook_configs WHERE app_id = apps.id AND is_active
                    UNION ALL
                    SELECT apps.id, apps.webhook_url WHERE apps.webhook_url <> ''
                ) AS endpoint
                CROSS JOIN LATERAL (
                    SELECT sum(deliveries)::bigint AS attempts,
                           (sum(deliveries) FILTER (WHERE NOT success))::bigint AS failures
                    FROM webhook_counters
                    WHERE endpoint_id = endpoint.id AND hour >= $3 AND event <> 'test'
                ) AS counted
           WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR apps.id = $2)
                 AND failures * 2 >= attempts
           ORDER BY failures DESC, endpoint.url LIMIT $4"#,
        subscriber.0,
        app.map(|app| app.0),
        since,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Removes up to `limit` counters of hours before `past`; returns how many.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM webhook_counters
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM webhook_counters WHERE hour < $1 ORDER BY hour LIMIT $2
         ))",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
