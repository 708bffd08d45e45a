//! Ends subscriptions: at the end of the period when the subscriber cancels, and immediately when the subscriber is
//! deleted.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use tracing::Instrument as _;

use super::lifecycle::{Trigger, transition};
use super::{Billing, BillingError};
use mailgate_storage::billing_jobs::Job;
use mailgate_types::audit::{AuditAction, Author};
use mailgate_types::ids::SubscriberId;

/// A scheduled cancellation.
#[derive(Debug, Clone, Copy)]
pub struct Cancelled {
    /// When the subscription ends.
    pub current_period_end: Option<DateTime<Utc>>,
}

impl Billing {
    /// Cancels a subscription at the end of its period; until then nothing changes. It runs to completion even if the
    /// caller is cancelled.
    pub async fn cancel(
        &self,
        subscriber: SubscriberId,
        author: Author,
    ) -> Result<Cancelled, BillingError> {
        let billing = self.clone();
        self.tracker
            .spawn(async move { billing.schedule_end(subscriber, author).await }.in_current_span())
            .await
            .map_err(|_| BillingError::CutOff)?
    }

    async fn schedule_end(
        &self,
        subscriber: SubscriberId,
        author: Author,
    ) -> Result<Cancelled, BillingError> {
        let client = &self.payprov()?.client;
        self.permit(author).await?;
        let (account, _) = self.look(subscriber).await?;
        transition(account.status, Trigger::Cancel)?;
        let subscription = account
            .subscription_id
            .as_deref()
            .ok_or(BillingError::NoSubscription)?;
        // The subscription of a restored subscriber may still be set to end; from now on it ends because its owner
        // cancelled it.
        let ends_as_deleted = account.renewal_stopped;
        if ends_as_deleted {
            self.note_renewal(subscriber, false).await?;
        }
        if account.cancel_at_period_end && !ends_as_deleted {
            return Ok(Cancelled {
                current_period_end: account.current_period_end,
            });
        }
        let key = format!("mailgate-cancel-{}", Uuid::new_v4());
        // The secret may have been renewed during the call to the provider.
        self.permit(author).await?;
        client
            .set_cancel_at_period_end(subscription, true, &key)
            .await?;
        self.record(subscriber, AuditAction::SubscriptionCanceled, author)
            .await?;
        let (account, _) = self.look(subscriber).await?;
        Ok(Cancelled {
            current_period_end: account.current_period_end,
        })
    }

    /// Ends every subscription that a deleted subscriber is still billed for. The customer is kept, with its invoices.
    pub(super) async fn end_subscriptions(&self, job: &Job) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let Some(customer) = &job.customer_id else {
            return Ok(());
        };
        for subscription in client.subscriptions(customer).await? {
            if !subscription.is_alive() {
                continue;
            }
            match client.end_subscription(&subscription.id).await {
                Ok(_) => {
                    tracing::info!(subscriber_id = %job.subscriber, subscription_id = subscription.id, "the subscription of a deleted subscriber was ended");
                }
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
