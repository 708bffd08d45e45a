//! Provisions a subscriber's customer and subscription at the provider: exactly once, whatever responses are lost. If
//! both exist, the customer's name and address are updated to the subscriber's current ones.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Billing, BillingError};
use mailgate_providers::payprov::Beginning;
use mailgate_storage::billing_jobs::{self, Job, JobKind};
use mailgate_storage::subscribers::billing::{self, BillingAccount};
use mailgate_types::ids::SubscriberId;

/// How long a sign-up waits for the provider.
pub(super) const AT_ONCE: Duration = Duration::from_secs(10);

impl Billing {
    pub(super) async fn provision(&self, job: &Job) -> Result<(), BillingError> {
        let subscriber = job.subscriber;
        let customer = self.ensure_customer(subscriber, job.attempts > 1).await?;
        // Reuses an existing one, created before the response was lost or by hand.
        let (account, _) = self.look(subscriber).await?;
        if account.subscription_id.is_some() {
            return self.name_customer(&account, &customer).await;
        }
        // Once it is restored, it is found again.
        if account.is_deleted {
            return Ok(());
        }
        let client = &self.payprov()?.client;
        let quantity = {
            let mut connection = self.pool.acquire().await?;
            let counted = billing::quantity(&mut connection, subscriber).await?;
            // The same in all attempts: the provider ties an idempotency key to one request.
            billing_jobs::fix_quantity(&mut connection, job, counted).await?
        };
        let beginning = match self.payprov()?.trial_days {
            0 => Beginning::Unpaid,
            days => Beginning::Trial(days),
        };
        let key = format!("mailgate-subscription-{}", job.id);
        let created = client
            .create_subscription(subscriber, &customer, quantity, beginning, &key)
            .await?;
        tracing::info!(subscriber_id = %subscriber, subscription_id = created.id, "a subscription was created");
        match self.look(subscriber).await {
            Ok(_) => {}
            // If the subscriber was deleted meanwhile, end the new subscription.
            Err(BillingError::Gone) => self.enqueue_end(subscriber, &customer).await?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The provider's customer of a subscriber, created if there is none. With `look_first`, an existing one is
    /// searched for first: idempotency keys expire after a day.
    pub(super) async fn ensure_customer(
        &self,
        subscriber: SubscriberId,
        look_first: bool,
    ) -> Result<String, BillingError> {
        let client = &self.payprov()?.client;
        let account = {
            let mut connection = self.pool.acquire().await?;
            billing::find(&mut connection, subscriber).await?
        };
        let account = account.ok_or(BillingError::Gone)?;
        if let Some(customer) = account.customer_id {
            return Ok(customer);
        }
        let found = if look_first {
            client.find_customer(subscriber, &account.email).await?
        } else {
            None
        };
        let customer = if let Some(customer) = found {
            customer
        } else {
            // A new key after each change: the provider ties an idempotency key to one request.
            let said = Sha256::digest(format!("{}\n{}", account.email, account.label));
            let said = u32::from_be_bytes([said[0], said[1], said[2], said[3]]);
            let key = format!("mailgate-customer-{subscriber}-{said:08x}");
            client
                .create_customer(subscriber, &account.email, &account.label, &key)
                .await?
        };
        let mut connection = self.pool.acquire().await?;
        billing::set_customer(&mut connection, subscriber, &customer.id)
            .await?
            .ok_or(BillingError::Gone)
    }

    /// Updates the customer's name and address to the subscriber's.
    async fn name_customer(
        &self,
        account: &BillingAccount,
        customer: &str,
    ) -> Result<(), BillingError> {
        let key = format!("mailgate-customer-{}", Uuid::new_v4());
        let client = &self.payprov()?.client;
        client
            .name_customer(customer, &account.email, &account.label, &key)
            .await?;
        Ok(())
    }

    /// Schedules the end of a subscriber's subscriptions if it was deleted while one was created.
    pub(super) async fn enqueue_end(
        &self,
        subscriber: SubscriberId,
        customer: &str,
    ) -> Result<(), BillingError> {
        let mut connection = self.pool.acquire().await?;
        let (kind, now) = (JobKind::End, self.clock.now());
        billing_jobs::enqueue(&mut connection, subscriber, kind, Some(customer), now).await?;
        self.wake();
        Ok(())
    }
}
