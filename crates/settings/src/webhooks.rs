//! The settings of webhook delivery.

use std::time::Duration;

use super::reader::Reader;

/// The settings of webhook delivery.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Whether customers' URLs may use http and private addresses.
    pub allow_private: bool,
    /// Concurrent deliveries.
    pub concurrency: usize,
    /// Concurrent deliveries per endpoint.
    pub endpoint_concurrency: usize,
    /// The timeout of one delivery: connection, request and response.
    pub exchange: Duration,
    /// The delay before the next attempt, after each failed one.
    pub retry: Vec<Duration>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> WebhookSettings {
    WebhookSettings {
        allow_private: reader.flag("webhooks.allow_private"),
        concurrency: reader.number("webhooks.concurrency", 1, 100_000),
        endpoint_concurrency: reader.number("webhooks.endpoint_concurrency", 1, 10_000),
        exchange: Duration::from_secs(reader.number("webhooks.exchange_seconds", 1, 300)),
        retry: reader.list_of_seconds("webhooks.retry_seconds"),
    }
}
