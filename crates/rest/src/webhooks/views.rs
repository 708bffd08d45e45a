//! Webhook configurations and deliveries in responses.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::enums::{DeliveredEvent, inlined};
use mailgate_domain::webhooks::{Configuration, DeliveryPage, ShownDelivery, WebhookConfig};
use mailgate_types::event::TestEvent;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::WebhookConfigId;
use mailgate_types::moment::iso8601;
use mailgate_types::signing_secret::{SecretEncoding, SigningSecret};

/// An app's webhook configurations.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// Oldest first.
    pub(crate) webhooks: Vec<WebhookItem>,
}

/// A webhook configuration in the list.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookItem {
    /// `wconf_…`
    #[schema(example = "wconf_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The app's UUID.
    #[schema(format = "uuid")]
    app_id: String,
    /// Where events go.
    url: String,
    /// The subscribed events.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it receives new events.
    is_active: bool,
    /// The truncated secret, enough to recognize it.
    #[schema(example = "whsec_MfKQ…LaSw")]
    secret: String,
    /// How the key is derived from the secret.
    #[schema(value_type = SecretEncoding)]
    secret_encoding: &'static str,
    /// Until when the previous secret also signs, ISO 8601, UTC; null if it doesn't.
    #[schema(required, format = DateTime)]
    previous_secret_expires_at: Option<String>,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the last delivery attempt began, ISO 8601, UTC; null if there is none.
    #[schema(required, format = DateTime)]
    last_triggered_at: Option<String>,
    /// The share of delivery attempts for the last 7 days' events that succeeded, from 0 to 1; 1 if there are
    /// none.
    #[schema(minimum = 0, maximum = 1, example = 0.98)]
    success_rate_7d: f64,
}

/// A new webhook configuration, with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedWebhook {
    /// `wconf_…`
    #[schema(example = "wconf_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// The app's UUID.
    #[schema(format = "uuid")]
    app_id: String,
    /// Where events go.
    url: String,
    /// The subscribed events.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it receives new events.
    is_active: bool,
    /// The signing secret. Shown only in this response.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// How the key is derived from the secret.
    #[schema(value_type = SecretEncoding)]
    secret_encoding: &'static str,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
}

/// A changed webhook configuration.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangedWebhook {
    /// `wconf_…`
    #[schema(example = "wconf_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// Where events go.
    url: String,
    /// The subscribed events.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it receives new events.
    is_active: bool,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// The result of a test delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookTestResult {
    /// Whether the receiver responded with 2xx.
    pub(crate) success: bool,
    /// The receiver's status code; null if there was no response.
    #[schema(required, minimum = 100, maximum = 999)]
    pub(crate) http_status: Option<i32>,
    /// The response body, up to 16 KiB; empty if there was no response.
    pub(crate) response_body: String,
    /// Duration.
    #[schema(minimum = 0)]
    pub(crate) duration_ms: i64,
    /// Why it failed; null when it didn't.
    #[schema(required)]
    pub(crate) error_message: Option<String>,
    /// The body that was sent.
    pub(crate) payload_sent: TestPayload,
}

/// The body of a test delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct TestPayload {
    /// `test`
    #[schema(example = "test")]
    event: &'static str,
    /// The app's UUID.
    #[schema(format = "uuid")]
    app_id: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The test event's data.
    data: TestData,
}

/// The data of a test event.
#[derive(Serialize, ToSchema)]
pub(crate) struct TestData {
    /// A message for people.
    message: &'static str,
}

/// The delivery attempts to an endpoint.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// Newest first.
    pub(crate) deliveries: Vec<DeliveryItem>,
    /// Number of attempts that match the filters.
    #[schema(minimum = 0)]
    pub(crate) total: i64,
    /// How many of them succeeded.
    #[schema(minimum = 0)]
    pub(crate) success_count: i64,
    /// How many of them failed.
    #[schema(minimum = 0)]
    pub(crate) failure_count: i64,
}

/// A delivery attempt.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryItem {
    /// `wdel_…`
    #[schema(example = "wdel_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// `wconf_…`; null for the app's own `webhook_url`.
    #[schema(required)]
    webhook_config_id: Option<String>,
    /// `msg_…`: the `webhook-id` header, the same for all attempts.
    #[schema(example = "msg_01h2xcejqtf2nbrexx3vqjhp41")]
    message_id: String,
    /// The event's name; `test` for a test delivery.
    #[schema(schema_with = inlined::<DeliveredEvent>)]
    event: String,
    /// Whether it was a test delivery. The bodies of tests aren't kept, so they can't be delivered again.
    test: bool,
    /// Counted from 1.
    #[schema(minimum = 1)]
    attempt_number: i32,
    /// The receiver's status code; null if there was no response.
    #[schema(required, minimum = 100, maximum = 999)]
    http_status: Option<i32>,
    /// The response body, up to 16 KiB; empty if there was no response.
    response_body: String,
    /// When the attempt began, ISO 8601 with milliseconds, UTC.
    #[schema(format = DateTime)]
    delivered_at: String,
    /// Duration.
    #[schema(minimum = 0)]
    duration_ms: i64,
    /// Whether the receiver responded with 2xx.
    success: bool,
    /// Why it failed; null when it didn't.
    #[schema(required)]
    error_message: Option<String>,
    /// The body that was sent. Null for a test, when it is no longer kept, and beyond 4 MiB in lists: get the single
    /// delivery then.
    #[schema(required, value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
}

/// The attempt that a retry queues.
#[derive(Serialize, ToSchema)]
pub(crate) struct RetriedDelivery {
    /// `msg_…`: the `webhook-id` header, the same as before.
    #[schema(example = "msg_01h2xcejqtf2nbrexx3vqjhp41")]
    pub(crate) message_id: String,
    /// `wconf_…`; null for the app's own `webhook_url`.
    #[schema(required)]
    pub(crate) webhook_config_id: Option<String>,
    /// The attempt's number.
    #[schema(minimum = 2)]
    pub(crate) attempt_number: i32,
}

/// Names as in JSON.
fn names(events: &[EventName]) -> Vec<&'static str> {
    events.iter().map(|event| event.as_str()).collect()
}

impl WebhookItem {
    pub(crate) fn new(shown: Configuration) -> Self {
        let config = shown.config;
        Self {
            id: config.id.to_string(),
            app_id: config.app.to_string(),
            events: names(&config.events),
            url: config.url,
            is_active: config.is_active,
            secret: shown.truncated_secret,
            secret_encoding: shown.secret_encoding.as_str(),
            previous_secret_expires_at: shown.previous_secret_expires_at.map(iso8601),
            created_at: iso8601(config.created_at),
            last_triggered_at: shown.last_triggered_at.map(iso8601),
            success_rate_7d: shown.success_rate_7d,
        }
    }
}

impl CreatedWebhook {
    pub(crate) fn new(config: WebhookConfig, secret: &SigningSecret) -> Self {
        Self {
            id: config.id.to_string(),
            app_id: config.app.to_string(),
            events: names(&config.events),
            url: config.url,
            is_active: config.is_active,
            secret: secret.expose().to_owned(),
            secret_encoding: secret.encoding().as_str(),
            created_at: iso8601(config.created_at),
        }
    }
}

impl ChangedWebhook {
    pub(crate) fn new(config: WebhookConfig) -> Self {
        Self {
            id: config.id.to_string(),
            events: names(&config.events),
            url: config.url,
            is_active: config.is_active,
            updated_at: iso8601(config.updated_at),
        }
    }
}

impl TestPayload {
    pub(crate) fn new(event: &TestEvent) -> Self {
        Self {
            event: TestEvent::NAME,
            app_id: event.app.to_string(),
            timestamp: iso8601(event.at),
            data: TestData {
                message: TestEvent::MESSAGE,
            },
        }
    }
}

impl DeliveryList {
    pub(crate) fn new(config: Option<WebhookConfigId>, page: DeliveryPage) -> Self {
        let (items, totals) = (page.deliveries.into_iter(), page.totals);
        Self {
            deliveries: items.map(|it| DeliveryItem::new(config, it)).collect(),
            total: totals.successes + totals.failures,
            success_count: totals.successes,
            failure_count: totals.failures,
        }
    }
}

impl DeliveryItem {
    pub(crate) fn new(config: Option<WebhookConfigId>, shown: ShownDelivery) -> Self {
        let delivery = shown.delivery;
        Self {
            id: delivery.id.to_string(),
            webhook_config_id: config.map(|config| config.to_string()),
            message_id: delivery.message.to_string(),
            test: delivery.event == TestEvent::NAME,
            event: delivery.event,
            attempt_number: delivery.attempt_number,
            http_status: delivery.http_status,
            response_body: delivery.response_body,
            delivered_at: iso8601(delivery.delivered_at),
            duration_ms: delivery.duration_ms,
            success: delivery.success,
            error_message: delivery.error_message,
            // The bytes that the gateway serialized.
            payload: (shown.payload).and_then(|body| RawValue::from_string(body).ok()),
        }
    }
}
