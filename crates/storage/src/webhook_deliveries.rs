//! The table `webhook_deliveries`: delivery attempts. They are written along with the queue's rows
//! (`webhook_queue::record`); here they are read. An endpoint's list of them is in [`list`].

pub mod list;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use self::list::Delivery;
use mailgate_types::ids::{
    AppId, EndpointId, LogId, SubscriberId, WebhookDeliveryId, WebhookMessageId, lowest_uuid_at,
};

/// A delivery attempt as shown in the details of a log row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// `wdel_…`
    pub id: WebhookDeliveryId,
    /// The event's message: `webhook-id`.
    pub message: WebhookMessageId,
    /// The endpoint, which may be deleted meanwhile.
    pub endpoint: EndpointId,
    /// The event's name.
    pub event: String,
    /// Whether the receiver accepted it.
    pub success: bool,
    /// When the attempt began.
    pub delivered_at: DateTime<Utc>,
}

/// The delivery attempts of events about one message that happened at `since` or later, oldest first, a hundred at
/// most.
pub async fn of_log(
    connection: &mut PgConnection,
    log: LogId,
    since: DateTime<Utc>,
) -> Result<Vec<LoggedDelivery>, sqlx::Error> {
    // The partitions are by age.
    sqlx::query_as!(
        LoggedDelivery,
        "SELECT id, message_id AS message, endpoint_id AS endpoint, event, success, delivered_at
         FROM webhook_deliveries
         WHERE log_id = $1 AND message_id >= $2
         ORDER BY id
         LIMIT 100",
        log.0,
        lowest_uuid_at(since),
    )
    .fetch_all(connection)
    .await
}

/// Records a test: an attempt without a message, whose body isn't kept.
///
/// # Errors
///
/// The database's error; nothing is written then.
pub async fn record_test(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
    test: &Delivery,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH delivered AS (
             INSERT INTO webhook_deliveries
                 (message_id, endpoint_id, attempt_number, id, app_id, event, http_status,
                  response_body, delivered_at, duration_ms, success, error_message)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         )
         INSERT INTO webhook_counters AS counter
             (endpoint_id, hour, event, success, app_id, deliveries)
         VALUES ($2, date_trunc('hour', $13::timestamptz, 'UTC'), $6, $11, $5, 1)
         ON CONFLICT (endpoint_id, hour, event, success)
         DO UPDATE SET deliveries = counter.deliveries + EXCLUDED.deliveries",
        test.message.0,
        endpoint.0,
        test.attempt_number,
        test.id.0,
        app.0,
        test.event,
        test.http_status,
        test.response_body,
        test.delivered_at,
        test.duration_ms,
        test.success,
        test.error_message,
        test.message.moment(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The message of a delivery attempt to this endpoint of the app.
pub async fn message_of(
    connection: &mut PgConnection,
    app: AppId,
    endpoint: EndpointId,
    delivery: WebhookDeliveryId,
) -> Result<Option<WebhookMessageId>, sqlx::Error> {
    let message = sqlx::query_scalar!(
        "SELECT message_id FROM webhook_deliveries WHERE endpoint_id = $1 AND id = $2 AND app_id = $3",
        endpoint.0,
        delivery.0,
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(message.map(WebhookMessageId))
}

/// The app of a delivery attempt, if it is the subscriber's. Its endpoint may have been deleted.
pub async fn app_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    endpoint: EndpointId,
    delivery: WebhookDeliveryId,
) -> Result<Option<AppId>, sqlx::Error> {
    let app = sqlx::query_scalar!(
        "SELECT app_id FROM webhook_deliveries JOIN apps ON apps.id = app_id
         WHERE endpoint_id = $1 AND webhook_deliveries.id = $2 AND subscriber_id = $3",
        endpoint.0,
        delivery.0,
        subscriber.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(app.map(AppId))
}
