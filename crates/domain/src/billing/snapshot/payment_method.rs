//! Determines whether a subscription has a payment method, and makes a newly entered one the default.

use uuid::Uuid;

use super::existing;
use mailgate_providers::payprov::objects::{Reference, Subscription};
use mailgate_providers::payprov::{PayprovClient, PayprovError};

/// Whether a subscription has a payment method, which decides if a trial goes on or ends. One that was entered but
/// isn't a default of anything yet (a finished checkout sets no default) is made the customer's default.
pub(super) async fn has_payment_method(
    client: &PayprovClient,
    subscription: &Subscription,
    customer: &str,
) -> Result<bool, PayprovError> {
    let has_ended = matches!(
        subscription.status.as_str(),
        "canceled" | "incomplete_expired"
    );
    if has_ended || subscription.default_payment_method.is_some() {
        return Ok(subscription.default_payment_method.is_some());
    }
    let has_default = match &subscription.customer {
        Reference::Object(customer) => customer.has_payment_method(),
        Reference::Id(_) => client.customer(customer).await?.has_payment_method(),
    };
    if has_default {
        return Ok(true);
    }
    let Some(newest) = client.newest_payment_method(customer).await? else {
        return Ok(false);
    };
    let key = format!("mailgate-default-{}", Uuid::new_v4());
    let set = client
        .set_default_payment_method(customer, &newest.id, &key)
        .await;
    // It may have been detached in the meantime.
    let set = existing(set)?.is_some();
    if set {
        tracing::info!(
            subscription_id = subscription.id,
            "the new payment method is the default from now on"
        );
    }
    Ok(set)
}
