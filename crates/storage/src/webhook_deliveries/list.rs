//! The table `webhook_deliveries`: an endpoint's attempts, newest first by `(endpoint_id, id)`, with totals from
//! `webhook_counters`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, EndpointId, WebhookDeliveryId, WebhookMessageId};

/// A delivery attempt.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// `wdel_…`
    pub id: WebhookDeliveryId,
    /// `msg_…`: the `webhook-id`.
    pub message: WebhookMessageId,
    /// The event's name.
    pub event: String,
    /// Counts from 1.
    pub attempt_number: i32,
    /// The response status; `None` if there was no response.
    pub http_status: Option<i32>,
    /// The response body, as far as it is kept.
    pub response_body: String,
    /// When the attempt began.
    pub delivered_at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
    /// Whether the receiver accepted it.
    pub success: bool,
    /// Why it failed.
    pub error_message: Option<String>,
}

/// Selects attempts.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    /// Of this event only.
    pub event: Option<EventName>,
    /// Successful or failed ones only.
    pub success: Option<bool>,
}

/// The number of attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryTotals {
    /// Accepted by the receiver.
    pub successes: i64,
    /// Failed.
    pub failures: i64,
}

/// Attempts among which the last accepted one is looked for.
const LOOKED_AT: i64 = 10_000;

/// When an endpoint's receiver last accepted a delivery; `None`: not in its latest attempts.
pub async fn last_accepted(
    connection: &mut PgConnection,
    endpoint: EndpointId,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT delivered_at
         FROM (SELECT id, delivered_at, success FROM webhook_deliveries
               WHERE endpoint_id = $1 ORDER BY id DESC LIMIT $2) AS latest
         WHERE success ORDER BY id DESC LIMIT 1",
        endpoint.0,
        LOOKED_AT,
    )
    .fetch_optional(connection)
    .await
}

/// An endpoint's attempts, newest first.
pub async fn list(
    connection: &mut PgConnection,
    endpoint: EndpointId,
    filter: DeliveryFilter,
    limit: i64,
    offset: i64,
) -> Result<Vec<Delivery>, sqlx::Error> {
    let event = filter.event.map(EventName::as_str);
    if filter.success == Some(false) {
        // A separate statement, for an index that holds failures only.
        sqlx::query_as!(
            Delivery,
            "SELECT id, message_id AS message, event, attempt_number, http_status, response_body,
                    delivered_at, duration_ms, success, error_message
             FROM webhook_deliveries
             WHERE endpoint_id = $1 AND NOT success AND ($2::text IS NULL OR event = $2)
             ORDER BY id DESC LIMIT $3 OFFSET $4",
            endpoint.0,
            event,
            limit,
            offset,
        )
        .fetch_all(connection)
        .await
    } else {
        sqlx::query_as!(
            Delivery,
            "SELECT id, message_id AS message, event, attempt_number, http_status, response_body,
                    delivered_at, duration_ms, success, error_message
             FROM webhook_deliveries
             WHERE endpoint_id = $1 AND ($2::text IS NULL OR event = $2)
                   AND ($3::boolean IS NULL OR success = $3)
             ORDER BY id DESC LIMIT $4 OFFSET $5",
            endpoint.0,
            event,
            filter.success,
            limit,
            offset,
        )
        .fetch_all(connection)
        .await
    }
}

/// One attempt to deliver to this endpoint of the app.
pub async fn find(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
    delivery: WebhookDeliveryId,
) -> Result<Option<Delivery>, sqlx::Error> {
    sqlx::query_as!(
        Delivery,
        "SELECT id, message_id AS message, event, attempt_number, http_status, response_body, delivered_at,
                duration_ms, success, error_message
         FROM webhook_deliveries WHERE endpoint_id = $1 AND id = $2 AND app_id = $3",
        endpoint.0,
        delivery.0,
        app.0,
    )
    .fetch_optional(connection)
    .await
}

/// The attempts to deliver one message to an endpoint, the first one first, a hundred at most.
pub async fn of_message(
    connection: &mut PgConnection,
    endpoint: EndpointId,
    message: WebhookMessageId,
) -> Result<Vec<Delivery>, sqlx::Error> {
    sqlx::query_as!(
        Delivery,
        "SELECT id, message_id AS message, event, attempt_number, http_status, response_body, delivered_at,
                duration_ms, success, error_message
         FROM webhook_deliveries WHERE message_id = $1 AND endpoint_id = $2
         ORDER BY attempt_number LIMIT 100",
        message.0,
        endpoint.0,
    )
    .fetch_all(connection)
    .await
}

/// The number of an endpoint's attempts.
pub async fn totals(
    connection: &mut PgConnection,
    endpoint: EndpointId,
    filter: DeliveryFilter,
) -> Result<DeliveryTotals, sqlx::Error> {
    sqlx::query_as!(
        DeliveryTotals,
        r#"SELECT coalesce(sum(deliveries) FILTER (WHERE success), 0)::bigint AS "successes!",
                  coalesce(sum(deliveries) FILTER (WHERE NOT success), 0)::bigint AS "failures!"
           FROM webhook_counters
           WHERE endpoint_id = $1 AND ($2::text IS NULL OR event = $2)
                 AND ($3::boolean IS NULL OR success = $3)"#,
        endpoint.0,
        filter.event.map(EventName::as_str),
        filter.success,
    )
    .fetch_one(connection)
    .await
}
