//! Webhook configurations and deliveries as the interface shows them.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::enums::{DeliveredEvent, written_out};
use mailgate_domain::webhooks::{Configuration, DeliveryPage, ShownDelivery, WebhookConfig};
use mailgate_types::event::TestEvent;
use mailgate_types::event_name::EventName;
use mailgate_types::ids::WebhookConfigId;
use mailgate_types::moment::iso8601;
use mailgate_types::signing_secret::{SecretEncoding, SigningSecret};

/// An app's webhook configurations.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// The oldest first.
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
    /// Which ones.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it gets any.
    is_active: bool,
    /// Enough of it to tell it from others.
    #[schema(example = "whsec_MfKQ…LaSw")]
    secret: String,
    /// How the key is read from the secret.
    #[schema(value_type = SecretEncoding)]
    secret_encoding: &'static str,
    /// ISO 8601, UTC: until when the secret before it signs too; null if it doesn't.
    #[schema(required, format = DateTime)]
    previous_secret_expires_at: Option<String>,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// ISO 8601, UTC: when the last delivery attempt began; null if none is on record.
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
    /// Which ones.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it gets any.
    is_active: bool,
    /// The secret that signs them. Shown only in this response.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// How the key is read from the secret.
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
    /// Which ones.
    #[schema(value_type = Vec<EventName>)]
    events: Vec<&'static str>,
    /// Whether it gets any.
    is_active: bool,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// The result of a test delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookTestResult {
    /// Whether the receiver answered 2xx.
    pub(crate) success: bool,
    /// What it answered; null when no answer came.
    #[schema(required, minimum = 100, maximum = 999)]
    pub(crate) http_status: Option<i32>,
    /// What stood in the answer, 16 KiB at most; empty when none came.
    pub(crate) response_body: String,
    /// How long it took.
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

/// What a test delivery tells.
#[derive(Serialize, ToSchema)]
pub(crate) struct TestData {
    /// A text for people.
    message: &'static str,
}

/// An endpoint's attempts to deliver.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// The newest first.
    pub(crate) deliveries: Vec<DeliveryItem>,
    /// Attempts that the filters match.
    #[schema(minimum = 0)]
    pub(crate) total: i64,
    /// How many of them succeeded.
    #[schema(minimum = 0)]
    pub(crate) success_count: i64,
    /// How many of them failed.
    #[schema(minimum = 0)]
    pub(crate) failure_count: i64,
}

/// An attempt to deliver.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryItem {
    /// `wdel_…`
    #[schema(example = "wdel_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// `wconf_…`; null for the app's own `webhook_url`.
    #[schema(required)]
    webhook_config_id: Option<String>,
    /// `msg_…`: the header `webhook-id`, the same over all attempts.
    #[schema(example = "msg_01h2xcejqtf2nbrexx3vqjhp41")]
    message_id: String,
    /// The event's name; `test` for a test delivery.
    #[schema(schema_with = written_out::<DeliveredEvent>)]
    event: String,
    /// Whether it was a test delivery. The bodies of tests aren't kept, so they can't be delivered again.
    test: bool,
    /// From 1 on.
    #[schema(minimum = 1)]
    attempt_number: i32,
    /// What the receiver answered; null when no answer came.
    #[schema(required, minimum = 100, maximum = 999)]
    http_status: Option<i32>,
    /// What stood in the answer, 16 KiB at most; empty when none came.
    response_body: String,
    /// ISO 8601 with milliseconds, UTC: when the attempt began.
    #[schema(format = DateTime)]
    delivered_at: String,
    /// How long it took.
    #[schema(minimum = 0)]
    duration_ms: i64,
    /// Whether the receiver answered 2xx.
    success: bool,
    /// Why it failed; null when it didn't.
    #[schema(required)]
    error_message: Option<String>,
    /// The body that was sent. Null for a test, when it's no longer kept, and in lists beyond 4 MiB in all: ask for
    /// the delivery alone then.
    #[schema(required, value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
}

/// The attempt that a retry makes.
#[derive(Serialize, ToSchema)]
pub(crate) struct RetriedDelivery {
    /// `msg_…`: the header `webhook-id`, the same as before.
    #[schema(example = "msg_01h2xcejqtf2nbrexx3vqjhp41")]
    pub(crate) message_id: String,
    /// `wconf_…`; null for the app's own `webhook_url`.
    #[schema(required)]
    pub(crate) webhook_config_id: Option<String>,
    /// The number that the attempt will have.
    #[schema(minimum = 2)]
    pub(crate) attempt_number: i32,
}

/// Names as JSON has them.
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
            // It is as the gateway wrote it.
            payload: (shown.payload).and_then(|body| RawValue::from_string(body).ok()),
        }
    }
}
