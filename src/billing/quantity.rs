//! The billed quantity: always the number of active mailboxes at the time the provider is called.

use super::{Billing, BillingError};
use crate::storage::billing_jobs::Job;
use crate::storage::subscribers::billing;
use mailgate_types::subscription::SubscriptionStatus;

impl Billing {
    /// Sets the quantity at the provider. A change in the meantime raises the job's generation, so that it runs again.
    pub(super) async fn sync_quantity(&self, job: &Job) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let subscriber = job.subscriber;
        let (account, quantity) = {
            let mut connection = self.pool.acquire().await?;
            let account = billing::find(&mut connection, subscriber).await?;
            let quantity = billing::quantity(&mut connection, subscriber).await?;
            (account.ok_or(BillingError::Gone)?, quantity)
        };
        // A subscription that is still to be created, or created again, starts with the right quantity.
        let Some(subscription) = account.subscription_id else {
            return Ok(());
        };
        if account.status == Some(SubscriptionStatus::Canceled) {
            return Ok(());
        }
        let now_there = client.subscription(&subscription).await?;
        let Some(item) = now_there.item(client.price()) else {
            tracing::error!(subscriber_id = %subscriber, subscription_id = subscription, "the subscription has no item to bill");
            return Ok(());
        };
        if item.quantity == Some(quantity) {
            return Ok(());
        }
        // The quantity is absolute, so that a retry in a later hour may use a key of its own.
        let key = format!(
            "mailgate-quantity-{}-{}-{}-{quantity}",
            job.id, job.generation, job.attempts
        );
        client
            .set_quantity(&subscription, &item.id, quantity, &key)
            .await?;
        tracing::info!(subscriber_id = %subscriber, subscription_id = subscription, quantity, "the billed quantity was set");
        Ok(())
    }
}
