//! The deliveries to a configuration.

use super::Webhooks;
use crate::storage::webhook_configs;
use crate::storage::webhook_deliveries::list;
use mailgate_types::ids::{AppId, EndpointId, WebhookConfigId};

pub use crate::storage::webhook_deliveries::list::{Delivery, DeliveryFilter, DeliveryTotals};

impl Webhooks {
    /// A page of a configuration's attempts that match the filter, newest first, and their total number; without `id`,
    /// those to the app's own `webhook_url`. `None` if the app has no such configuration.
    pub async fn deliveries(
        &self,
        app: AppId,
        id: Option<WebhookConfigId>,
        filter: DeliveryFilter,
        limit: i64,
        offset: i64,
    ) -> Result<Option<(Vec<Delivery>, DeliveryTotals)>, sqlx::Error> {
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
        Ok(Some((deliveries, totals)))
    }
}
