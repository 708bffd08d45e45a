//! Whether something pays for a subscription, and what is to pay that was entered.

use uuid::Uuid;

use super::existing;
use crate::providers::payprov::objects::{Reference, Subscription};
use crate::providers::payprov::{PayprovClient, PayprovError};

/// Whether something would pay for a subscription: a trial goes on or ends by it. What was entered and
/// doesn't pay by anybody's word yet (a finished checkout makes no default) is made the customer's default.
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
    // Taken away in this moment.
    let set = existing(set)?.is_some();
    if set {
        tracing::info!(
            subscription_id = subscription.id,
            "the new payment method is the default from now on"
        );
    }
    Ok(set)
}
