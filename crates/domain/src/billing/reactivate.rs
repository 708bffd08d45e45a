//! Reactivates a subscription: the open invoices are paid, or a new subscription is created.

use chrono::TimeDelta;
use sha2::{Digest as _, Sha256};
use tracing::Instrument as _;
use uuid::Uuid;

use super::backoff::LEASE;
use super::lifecycle::{Effect, State, Trigger, transition};
use super::snapshot::ProviderSnapshot;
use super::{Billing, BillingError};
use mailgate_providers::payprov::objects::Reference;
use mailgate_providers::payprov::{Beginning, PayprovError};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::subscribers::billing::{self, renewals};
use mailgate_types::audit::{AuditAction, Author};
use mailgate_types::hex::hex;
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::SubscriptionStatus;

/// How long an abandoned request for a new subscription may still arrive, and the provider may keep returning an error
/// for its idempotency key. Until then, each further request reuses the key.
const UNKNOWN: TimeDelta = TimeDelta::minutes(30);

/// The outcome of a reactivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reactivated {
    /// The subscription is active now and was not before.
    pub reactivated: bool,
    /// The current status.
    pub status: State,
}

/// The progress of a reactivation at the provider.
struct AtProvider<'a> {
    subscriber: SubscriberId,
    customer: &'a str,
    seen: &'a ProviderSnapshot,
    author: Author,
    /// Whether anything was paid there or created, or may have been.
    has_changed: bool,
}

impl Billing {
    /// Reactivates a subscription; one call at a time. It runs to completion even if the caller is cancelled.
    ///
    /// # Errors
    /// [`BillingError`]; payments made by then are kept.
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
        self.permit(author).await?;
        let now = self.clock.now();
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            renewals::claim(&mut connection, subscriber, now, now + LEASE).await?
        };
        if !claimed {
            return Err(BillingError::InFlight);
        }
        let outcome = self.reactivate_claimed(subscriber, author).await;
        let mut connection = self.pool.acquire().await?;
        renewals::release(&mut connection, subscriber).await?;
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
            let mut at = AtProvider {
                subscriber,
                customer: &customer,
                seen: &seen,
                author,
                has_changed: false,
            };
            let ended = account.subscription_id.as_deref();
            let done = self.bring_about(&mut at, effects, status, ended).await;
            // Also for payments made before a failure or a lost permission; a deleted subscriber has no trail.
            if at.has_changed && !matches!(done, Err(BillingError::Gone)) {
                let action = AuditAction::SubscriptionReactivated;
                let recorded = self.record(subscriber, action, author).await;
                done.and(recorded.map_err(BillingError::from))?;
            } else {
                done?;
            }
            status = self.look(subscriber).await?.0.status;
        }
        Ok(Reactivated {
            reactivated: is_active(status) && !is_active(before),
            status,
        })
    }

    /// `ended` is the subscription that a new one replaces.
    async fn bring_about(
        &self,
        at: &mut AtProvider<'_>,
        effects: &[Effect],
        status: State,
        ended: Option<&str>,
    ) -> Result<(), BillingError> {
        let mut is_payable = true;
        for effect in effects {
            match effect {
                Effect::UsePaymentMethod => {
                    is_payable = self.use_payment_method(at).await?;
                    if !is_payable && status != Some(SubscriptionStatus::Trialing) {
                        return Err(BillingError::NoPaymentMethod);
                    }
                }
                Effect::PayOpenInvoices => self.pay_open_invoices(at).await?,
                Effect::CreateSubscription => {
                    let ended = ended.ok_or(BillingError::NoSubscription)?;
                    self.subscribe_anew(at, ended).await?;
                }
                _ => {}
            }
        }
        at.has_changed |= is_payable;
        Ok(())
    }

    /// Makes the payment method entered last the default; `false` if the customer has none.
    async fn use_payment_method(&self, at: &mut AtProvider<'_>) -> Result<bool, BillingError> {
        let (customer, seen) = (at.customer, at.seen);
        let client = &self.payprov()?.client;
        let known = client.customer(customer).await?;
        let Some(newest) = client.newest_payment_method(customer).await? else {
            return Ok(known.has_payment_method());
        };
        let default = &known.invoice_settings.default_payment_method;
        if default.as_ref().map(Reference::id) != Some(&newest.id) {
            let key = format!("mailgate-default-{}", Uuid::new_v4());
            self.permit(at.author).await?;
            client
                .set_default_payment_method(customer, &newest.id, &key)
                .await?;
        }
        // The subscription's own default would take precedence over the customer's.
        let own = &seen.subscription.default_payment_method;
        let differs = own.as_ref().is_some_and(|own| own.id() != newest.id);
        if differs && seen.status != SubscriptionStatus::Canceled {
            let key = format!("mailgate-default-{}", Uuid::new_v4());
            self.permit(at.author).await?;
            client
                .set_subscription_payment_method(&seen.subscription.id, &newest.id, &key)
                .await?;
        }
        Ok(true)
    }

    async fn pay_open_invoices(&self, at: &mut AtProvider<'_>) -> Result<(), BillingError> {
        let client = &self.payprov()?.client;
        let subscription = &at.seen.subscription.id;
        for invoice in client.open_invoices(at.customer, subscription).await? {
            let key = format!("mailgate-pay-{}-{}", invoice.id, Uuid::new_v4());
            self.permit(at.author).await?;
            let paid = client.pay_invoice(&invoice.id, &key).await;
            at.has_changed |= match &paid {
                Ok(paid) => !paid.is_open(),
                Err(error) => !error.is_definite(),
            };
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

    /// Creates the subscription that replaces the one that has `ended`. After lost responses, crashes and retries it is
    /// still the same request to the provider, until the provider has refused it.
    async fn subscribe_anew(
        &self,
        at: &mut AtProvider<'_>,
        ended: &str,
    ) -> Result<(), BillingError> {
        let (subscriber, customer) = (at.subscriber, at.customer);
        let client = &self.payprov()?.client;
        let renewal = {
            let mut connection = self.pool.acquire().await?;
            let quantity = billing::quantity(&mut connection, subscriber).await?;
            let now = self.clock.now();
            // By the earlier of two clocks: a clock that jumps ahead must not allow a second request.
            let since = self.clock.agreed() - UNKNOWN;
            renewals::begin(&mut connection, subscriber, ended, quantity, now, since).await?
        };
        let renewal = renewal.ok_or(BillingError::Gone)?;
        let key = key(ended, renewal.number);
        self.permit(at.author).await?;
        let created = client
            .create_subscription(
                subscriber,
                customer,
                renewal.quantity,
                Beginning::Paid,
                &key,
            )
            .await;
        at.has_changed |= match &created {
            Ok(created) => created.status != "incomplete",
            Err(error) => !error.is_definite(),
        };
        if let Err(error) = &created
            && error.is_definite()
        {
            self.refused(subscriber, renewal.number).await;
        }
        let created = created.map_err(declined)?;
        tracing::info!(subscriber_id = %subscriber, subscription_id = created.id, "a new subscription was created");
        let is_there = {
            let mut connection = self.pool.acquire().await?;
            billing::find(&mut connection, subscriber).await?.is_some()
        };
        if !is_there {
            self.enqueue_end(subscriber, customer).await?;
            return Err(BillingError::Gone);
        }
        if created.status == "incomplete" {
            // Not every provider rejects a subscription whose payment failed; its open invoice is paid next time.
            self.look(subscriber).await?;
            return Err(BillingError::Declined(String::new()));
        }
        Ok(())
    }

    /// Makes the next request a new one. The caller gets the provider's response whether or not this is stored: the
    /// number expires by itself.
    async fn refused(&self, subscriber: SubscriberId, number: i32) {
        let stored = async {
            let mut connection = self.pool.acquire().await?;
            renewals::refuse(&mut connection, subscriber, number).await
        };
        if let Err(error) = stored.await {
            trouble!(error, error, subscriber_id = %subscriber, "a refused reactivation can't be recorded; the next one may be answered the same for half an hour");
        }
    }
}

/// The provider's idempotency key. The id is hashed, since both have the same longest length.
fn key(ended: &str, number: i32) -> String {
    let digest = hex(&Sha256::digest(ended)[..16]);
    format!("mailgate-reactivate-{digest}-{number}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_one_end_and_one_number() {
        let long = "s".repeat(255);
        let keys = [
            key("sub_1", 1),
            key("sub_1", 2),
            key("sub_2", 1),
            key(&long, i32::MAX),
        ];
        for (place, one) in keys.iter().enumerate() {
            assert!(one.len() < 100, "{one}");
            assert!(keys.iter().skip(place + 1).all(|other| other != one));
        }
        assert_eq!(key("sub_1", 1), keys[0]);
    }
}
