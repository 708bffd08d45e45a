//! The billed quantity: always the number of active mailboxes at the time the provider is called. And the renewal: the
//! subscription of a deleted subscriber doesn't renew.

use super::{Billing, BillingError};
use mailgate_providers::payprov::objects::Subscription;
use mailgate_storage::billing_jobs::Job;
use mailgate_storage::subscribers::billing::{self, BillingAccount};
use mailgate_storage::subscribers::deletion;
use mailgate_types::ids::SubscriberId;
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
        // A subscription that is still to be created, or created again, starts with the right quantity, and renews.
        let living = account.subscription_id.clone();
        let living = living.filter(|_| account.status != Some(SubscriptionStatus::Canceled));
        let Some(subscription) = living else {
            if account.renewal_stopped && !account.is_deleted {
                self.note_renewal(subscriber, false).await?;
            }
            return Ok(());
        };
        let now_there = client.subscription(&subscription).await?;
        // Its end is stored by the next fetch.
        if !now_there.is_alive() {
            return Ok(());
        }
        // A refused one doesn't block the others.
        let quantity = self.set_quantity(job, &now_there, quantity).await;
        let ends = now_there.is_canceled();
        self.sync_renewal(job, &account, &subscription, ends)
            .await?;
        quantity
    }

    async fn set_quantity(
        &self,
        job: &Job,
        now_there: &Subscription,
        quantity: i64,
    ) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let (subscriber, subscription) = (job.subscriber, &now_there.id);
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
            .set_quantity(subscription, &item.id, quantity, &key)
            .await?;
        tracing::info!(subscriber_id = %subscriber, subscription_id = subscription, quantity, "the billed quantity was set");
        Ok(())
    }

    /// Lets the subscription of a deleted subscriber end with its period, and that of a restored one renew, unless its
    /// owner had cancelled it. The change is recorded before the provider is called, so that it is known whatever
    /// happens.
    async fn sync_renewal(
        &self,
        job: &Job,
        account: &BillingAccount,
        subscription: &str,
        ends: bool,
    ) -> Result<(), BillingError> {
        match (account.is_deleted, ends) {
            (true, false) => {
                self.note_renewal(job.subscriber, true).await?;
                self.set_renewal(job, subscription, true).await
            }
            (false, _) if account.renewal_stopped => {
                if ends {
                    self.set_renewal(job, subscription, false).await?;
                }
                self.note_renewal(job.subscriber, false).await
            }
            _ => Ok(()),
        }
    }

    async fn set_renewal(
        &self,
        job: &Job,
        subscription: &str,
        ends: bool,
    ) -> Result<(), BillingError> {
        let (id, generation, attempts) = (job.id, job.generation, job.attempts);
        let key = format!("mailgate-renewal-{id}-{generation}-{attempts}-{ends}");
        let client = &self.payprov()?.client;
        client
            .set_cancel_at_period_end(subscription, ends, &key)
            .await?;
        tracing::info!(subscriber_id = %job.subscriber, subscription_id = subscription, ends, "the subscription's cancellation at period end was set");
        Ok(())
    }

    pub(super) async fn note_renewal(
        &self,
        id: SubscriberId,
        is_stopped: bool,
    ) -> Result<(), BillingError> {
        let mut connection = self.pool.acquire().await?;
        deletion::note_renewal_stopped(&mut connection, id, is_stopped).await?;
        Ok(())
    }
}
