//! Determines which payment method a subscription has, and makes a newly entered one the default.

use uuid::Uuid;

use super::existing;
use mailgate_providers::payprov::objects::{Reference, Subscription};
use mailgate_providers::payprov::{PayprovClient, PayprovError};
use mailgate_types::billing_details::SavedPaymentMethod;

/// The payment method of a subscription, which decides if a trial goes on or ends. One that was entered but isn't a
/// default of anything yet (a finished checkout sets no default) is made the customer's default.
pub(super) async fn payment_method(
    client: &PayprovClient,
    subscription: &Subscription,
    customer: &str,
) -> Result<Option<SavedPaymentMethod>, PayprovError> {
    let has_ended = matches!(
        subscription.status.as_str(),
        "canceled" | "incomplete_expired"
    );
    let own = subscription.default_payment_method.as_ref();
    if has_ended || own.is_some() {
        return Ok(own.map(Reference::saved));
    }
    let default = match &subscription.customer {
        Reference::Object(customer) => customer.payment_method(),
        Reference::Id(_) => client.customer(customer).await?.payment_method(),
    };
    if default.is_some() {
        return Ok(default);
    }
    let Some(newest) = client.newest_payment_method(customer).await? else {
        return Ok(None);
    };
    let key = format!("mailgate-default-{}", Uuid::new_v4());
    let set = client
        .set_default_payment_method(customer, &newest.id, &key)
        .await;
    // It may have been detached in the meantime.
    if existing(set)?.is_none() {
        return Ok(None);
    }
    tracing::info!(
        subscription_id = subscription.id,
        "the new payment method is the default from now on"
    );
    Ok(Some(newest.saved()))
}
