//! What was delivered to a configuration.

use super::Webhooks;
use crate::storage::webhook_configs;
use crate::storage::webhook_deliveries::list;
use mailgate_types::ids::{AppId, EndpointId, WebhookConfigId};

pub use crate::storage::webhook_deliveries::list::{Delivery, DeliveryFilter, DeliveryTotals};

impl Webhooks {
    /// A configuration's attempts that the filter matches: a part of them, newest first, and how many there
    /// are; `None` when the app has no such configuration.
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
        // What isn't there isn't looked for among all that is.
        let deliveries = if totals.successes + totals.failures > offset {
            list::list(&mut connection, endpoint, filter, limit, offset).await?
        } else {
            Vec::new()
        };
        Ok(Some((deliveries, totals)))
    }
}
