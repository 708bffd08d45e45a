//! The deliveries to an endpoint, with their bodies.

use super::Webhooks;
use mailgate_storage::webhook_deliveries::list;
use mailgate_storage::{webhook_configs, webhook_deliveries, webhook_messages};
use mailgate_types::ids::{AppId, EndpointId, SubscriberId, WebhookConfigId, WebhookDeliveryId};

pub use mailgate_storage::webhook_deliveries::list::{Delivery, DeliveryFilter, DeliveryTotals};

/// Maximum total size of a page's bodies, in bytes.
pub const MOST_PAYLOAD_BYTES: i64 = 4 << 20;

/// A delivery attempt, with its body.
#[derive(Debug)]
pub struct ShownDelivery {
    /// The attempt.
    pub delivery: Delivery,
    /// The body; `None` if it has expired, is that of a test, or has no room on its page.
    pub payload: Option<String>,
}

/// A part of an endpoint's attempts.
#[derive(Debug)]
pub struct DeliveryPage {
    /// The newest first.
    pub deliveries: Vec<ShownDelivery>,
    /// The number of all attempts that match the filter.
    pub totals: DeliveryTotals,
}

impl Webhooks {
    /// A page of a configuration's attempts that match the filter, newest first, and their total number; without `id`,
    /// those to the app's own `webhook_url`. `None` if the app has no such configuration. Bodies are included up to
    /// [`MOST_PAYLOAD_BYTES`].
    pub async fn deliveries(
        &self,
        app: AppId,
        id: Option<WebhookConfigId>,
        filter: DeliveryFilter,
        limit: i64,
        offset: i64,
    ) -> Result<Option<DeliveryPage>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let endpoint = match id {
            Some(id) => {
                let config = webhook_configs::find(&mut connection, app, id).await?;
                if config.is_none() {
                    return Ok(None);
                }
                EndpointId::from(id)
            }
            None => EndpointId::from(app),
        };
        let totals = list::totals(&mut connection, endpoint, filter).await?;
        // Past the last attempt there is nothing to search for.
        let deliveries = if totals.successes + totals.failures > offset {
            list::list(&mut connection, endpoint, filter, limit, offset).await?
        } else {
            Vec::new()
        };
        let messages: Vec<_> = deliveries.iter().map(|it| it.message).collect();
        let payloads =
            webhook_messages::bodies_within(&mut connection, app, &messages, MOST_PAYLOAD_BYTES);
        let deliveries = deliveries.into_iter().zip(payloads.await?);
        Ok(Some(DeliveryPage {
            deliveries: deliveries
                .map(|(delivery, payload)| ShownDelivery { delivery, payload })
                .collect(),
            totals,
        }))
    }

    /// One attempt to deliver to a configuration, or without `config` to the app's own `webhook_url`.
    pub async fn delivery(
        &self,
        app: AppId,
        config: Option<WebhookConfigId>,
        id: WebhookDeliveryId,
    ) -> Result<Option<ShownDelivery>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let endpoint = config.map_or_else(|| EndpointId::from(app), EndpointId::from);
        let Some(delivery) = list::find(&mut connection, app, endpoint, id).await? else {
            return Ok(None);
        };
        let messages = [(app, delivery.message)];
        let bodies = webhook_messages::bodies(&mut connection, &messages).await?;
        let payload = bodies.into_iter().next().map(|(_, body)| body);
        Ok(Some(ShownDelivery { delivery, payload }))
    }

    /// One attempt to deliver to an endpoint of the subscriber's that may have been deleted since.
    pub async fn owned_delivery(
        &self,
        subscriber: SubscriberId,
        endpoint: EndpointId,
        id: WebhookDeliveryId,
    ) -> Result<Option<ShownDelivery>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let app = webhook_deliveries::app_of(&mut connection, subscriber, endpoint, id).await?;
        drop(connection);
        match app {
            Some(app) => self.delivery(app, endpoint.config(app), id).await,
            None => Ok(None),
        }
    }
}
