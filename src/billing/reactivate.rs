//! Reactivates a subscription: the open invoices are paid, or a new subscription is created.

use uuid::Uuid;

use tracing::Instrument as _;

use super::backoff::LEASE;
use super::lifecycle::{Effect, State, Trigger, transition};
use super::sync::ProviderSnapshot;
use super::{Billing, BillingError};
use crate::providers::payprov::objects::Reference;
use crate::providers::payprov::{Beginning, PayprovError};
use crate::storage::subscribers::billing;
use mailgate_types::audit::{AuditAction, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::SubscriptionStatus;

/// The outcome of a reactivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reactivated {
    /// The subscription is active now and was not before.
    pub reactivated: bool,
    /// The current status.
    pub status: State,
}

impl Billing {
    /// Reactivates a subscription; one call at a time. It runs to completion even if the caller is cancelled.
    ///
    /// # Errors
    ///
    /// [`BillingError`]; what has been paid by then stays paid.
    pub async fn reactivate(
        &self,
        subscriber: SubscriberId,
        author: Author,
    ) -> Result<Reactivated, BillingError> {
        self.payprov()?;
        let billing = self.clone();
        self.tracker
            .spawn(
                async move { billing.reactivate_alone(subscriber, author).await }.in_current_span(),
            )
            .await
            .map_err(|_| BillingError::CutOff)?
    }

    async fn reactivate_alone(
        &self,
        subscriber: SubscriberId,
        author: Author,
    ) -> Result<Reactivated, BillingError> {
        let now = self.clock.now();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            billing::claim_reactivation(&mut connection, subscriber, now, now + LEASE).await?
        };
        if !claimed {
            return Err(BillingError::InFlight);
        }
        let outcome = self.reactivate_claimed(subscriber, author).await;
        let mut connection = self.pool.acquire().await?;
        billing::release_reactivation(&mut connection, subscriber).await?;
        if let Err(error) = &outcome {
            tracing::info!(subscriber_id = %subscriber, %error, "a subscription was not reactivated");
        }
        outcome
    }

    async fn reactivate_claimed(
        &self,
        subscriber: SubscriberId,
        author: Author,
    ) -> Result<Reactivated, BillingError> {
        // The provider's current state counts, not the stored one: it may have been paid meanwhile.
        let before = {
            let mut connection = self.pool.acquire().await?;
            let account = billing::find(&mut connection, subscriber).await?;
            account.ok_or(BillingError::Gone)?.status
        };
        let (account, seen) = self.look(subscriber).await?;
        let (Some(customer), Some(seen)) = (account.customer_id, seen) else {
            return Err(BillingError::NoSubscription);
        };
        let effects = transition(account.status, Trigger::Reactivate)
            .map_err(|_| BillingError::NoSubscription)?
            .effects;
        let mut status = account.status;
        let is_active = |status| status == Some(SubscriptionStatus::Active);
        if effects.is_empty() && is_active(status) && !is_active(before) {
            // The fetch itself has already made the entered card the default.
            self.record(subscriber, AuditAction::SubscriptionReactivated, author)
                .await?;
        } else if !effects.is_empty() {
            let mut has_changed = true;
            for effect in effects {
                match effect {
                    Effect::UsePaymentMethod => {
                        let is_payable = self.use_payment_method(&customer, &seen).await?;
                        if !is_payable && status != Some(SubscriptionStatus::Trialing) {
                            return Err(BillingError::NoPaymentMethod);
                        }
                        has_changed = is_payable;
                    }
                    Effect::PayOpenInvoices => self.pay_open_invoices(&customer, &seen).await?,
                    Effect::CreateSubscription => {
                        self.subscribe_anew(subscriber, &customer).await?;
                    }
                    _ => {}
                }
            }
            if has_changed {
                self.record(subscriber, AuditAction::SubscriptionReactivated, author)
                    .await?;
            }
            status = self.look(subscriber).await?.0.status;
        }
        Ok(Reactivated {
            reactivated: is_active(status) && !is_active(before),
            status,
        })
    }

    /// Makes the payment method that was entered last the one that is charged; `false` if the customer has none.
    async fn use_payment_method(
        &self,
        customer: &str,
        seen: &ProviderSnapshot,
    ) -> Result<bool, BillingError> {
        let client = &self.payprov()?.client;
        let known = client.customer(customer).await?;
        let Some(newest) = client.newest_payment_method(customer).await? else {
            return Ok(known.has_payment_method());
        };
        let default = &known.invoice_settings.default_payment_method;
        if default.as_ref().map(Reference::id) != Some(&newest.id) {
            let key = format!("mailgate-default-{}", Uuid::new_v4());
            client
                .set_default_payment_method(customer, &newest.id, &key)
                .await?;
        }
        // The subscription's own default would take precedence over the customer's.
        let own = &seen.subscription.default_payment_method;
        let differs = own.as_ref().is_some_and(|own| own.id() != newest.id);
        if differs && seen.status != SubscriptionStatus::Canceled {
            let key = format!("mailgate-default-{}", Uuid::new_v4());
            client
                .set_subscription_payment_method(&seen.subscription.id, &newest.id, &key)
                .await?;
        }
        Ok(true)
    }

    async fn pay_open_invoices(
        &self,
        customer: &str,
        seen: &ProviderSnapshot,
    ) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let subscription = &seen.subscription.id;
        for invoice in client.open_invoices(customer, subscription).await? {
            let key = format!("mailgate-pay-{}-{}", invoice.id, Uuid::new_v4());
            let paid = client.pay_invoice(&invoice.id, &key).await;
            if let Err(PayprovError::Refused { status: 400, .. }) = paid
                && !client.invoice(&invoice.id).await?.is_open()
            {
                // The provider's own retry was faster.
                continue;
            }
            let paid = paid.map_err(declined)?;
            if paid.is_open() {
                return Err(BillingError::Declined(String::new()));
            }
            tracing::info!(
                subscription_id = subscription,
                invoice_id = invoice.id,
                "an open invoice was paid"
            );
        }
        Ok(())
    }

    async fn subscribe_anew(
        &self,
        subscriber: SubscriberId,
        customer: &str,
    ) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let quantity = {
            let mut connection = self.pool.acquire().await?;
            billing::quantity(&mut connection, subscriber).await?
        };
        let key = format!("mailgate-reactivate-{}", Uuid::new_v4());
        let created = client
            .create_subscription(subscriber, customer, quantity, Beginning::Paid, &key)
            .await
            .map_err(declined)?;
        tracing::info!(subscriber_id = %subscriber, subscription_id = created.id, "a new subscription was created");
        if created.status == "incomplete" {
            // Not every provider rejects a subscription whose payment failed; its open invoice is paid next time.
            self.look(subscriber).await?;
            return Err(BillingError::Declined(String::new()));
        }
        Ok(())
    }
}

/// A declined payment is the subscriber's problem, any other refusal ours.
fn declined(error: PayprovError) -> BillingError {
    match error {
        PayprovError::Refused {
            status: 402, code, ..
        } => BillingError::Declined(code),
        error => error.into(),
    }
}
