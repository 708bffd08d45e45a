//! The settings of how webhooks leave.

use std::time::Duration;

use super::reader::Reader;

/// How webhooks leave.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Whether customers' addresses may be http and private.
    pub allow_private: bool,
    /// Deliveries at once.
    pub concurrency: usize,
    /// Deliveries at once to one endpoint.
    pub endpoint_concurrency: usize,
    /// Time for one delivery: connection, request and answer.
    pub exchange: Duration,
    /// Time to the next attempt, after each failed one.
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
