//! The provider's state of a customer, as fetched now: its current subscription, and all that decides on its status.

mod details;
mod payment_method;

use self::details::details;
use self::payment_method::payment_method;
use mailgate_providers::payprov::objects::{Invoice, Subscription};
use mailgate_providers::payprov::{PayprovClient, PayprovError};
use mailgate_storage::subscribers::billing::BillingAccount;
use mailgate_types::billing_details::BillingDetails;
use mailgate_types::subscription::SubscriptionStatus;

/// Maximum stored ids of subscriptions besides the current one.
const OTHERS: usize = 10;

/// The provider's state of a customer.
#[derive(Debug)]
pub(super) struct ProviderSnapshot {
    pub(super) subscription: Subscription,
    pub(super) status: SubscriptionStatus,
    /// The known subscription, if it was found to have ended and this one replaces it.
    pub(super) instead_of: Option<String>,
    /// There is a payment method for it.
    pub(super) has_payment_method: bool,
    /// An open invoice of it whose payment failed.
    pub(super) failed_invoice: Option<Invoice>,
    /// Other living subscriptions of the customer that bill mailboxes.
    pub(super) others: Vec<String>,
    /// What the portal shows of it.
    pub(super) details: BillingDetails,
    /// Whether the amount due in it is the provider's present one.
    pub(super) is_due_known: bool,
}

impl ProviderSnapshot {
    pub(super) fn has_ended(&self) -> bool {
        self.status == SubscriptionStatus::Canceled
    }

    pub(super) fn in_trial(&self) -> bool {
        self.subscription.status == "trialing"
    }
}

/// The objects of a customer that an event refers to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hint<'a> {
    pub(super) subscription: Option<&'a str>,
    pub(super) invoice: Option<&'a str>,
}

/// Fetches the current subscription: the known one, or once that has ended the newest that has not.
pub(super) async fn see(
    client: &PayprovClient,
    account: &BillingAccount,
    customer: &str,
    hint: Hint<'_>,
) -> Result<Option<ProviderSnapshot>, PayprovError> {
    let known = async {
        match &account.subscription_id {
            Some(id) => client.subscription(id).await.map(Some),
            None => Ok(None),
        }
    };
    let (known, mut all) = tokio::try_join!(known, client.subscriptions(customer))?;
    // The provider's list may not yet contain the subscription of an event.
    if let Some(id) = hint.subscription
        && account.subscription_id.as_deref() != Some(id)
        && all.iter().all(|other| other.id != id)
        && let Some(hinted) = existing(client.subscription(id).await)?
    {
        all.push(hinted);
    }
    all.retain(|other| other.customer_id() == customer);
    all.sort_by_key(|other| std::cmp::Reverse((other.is_alive(), other.created)));
    let newest = all.first().cloned();
    let chosen = match (known, newest) {
        (Some(known), _) if known.is_alive() => Some(known),
        (Some(_), Some(newest)) if newest.is_alive() => Some(newest),
        (None, newest) => newest,
        (known, _) => known,
    };
    let Some(subscription) = chosen else {
        return Ok(None);
    };
    let others = others(&all, &subscription, client.price());
    let payment_method = payment_method(client, &subscription, customer).await?;
    let mut failed_invoice = None;
    let known = account.failed_invoice_id.as_deref();
    for id in [hint.invoice, known].into_iter().flatten() {
        if failed_invoice.is_none() {
            failed_invoice = existing(client.invoice(id).await)?.filter(|invoice| {
                invoice.is_open() && invoice.subscription_id() == Some(&subscription.id)
            });
        }
    }
    let has_payment_method = payment_method.is_some();
    let status = status(&subscription, has_payment_method, failed_invoice.is_some())?;
    let known = account.subscription_id.clone();
    let mut seen = ProviderSnapshot {
        instead_of: known.filter(|known| *known != subscription.id),
        subscription,
        status,
        has_payment_method,
        failed_invoice,
        others,
        details: BillingDetails::default(),
        is_due_known: false,
    };
    (seen.details, seen.is_due_known) = details(client, &seen, customer, payment_method).await;
    Ok(Some(seen))
}

/// The living subscriptions of a customer that bill mailboxes beside this one, which lives.
fn others(all: &[Subscription], counts: &Subscription, price: &str) -> Vec<String> {
    let others = all.iter().filter(|other| {
        counts.is_alive()
            && other.is_alive()
            && other.id != counts.id
            && other.is_of_mailboxes(price)
    });
    others.map(|other| other.id.clone()).take(OTHERS).collect()
}

/// `None` if the provider reports that the object doesn't exist.
fn existing<T>(answer: Result<T, PayprovError>) -> Result<Option<T>, PayprovError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maps the provider's status to ours. A trial with a payment method counts as active, since it will turn into a paid
/// subscription. While an invoice whose payment failed is open, the subscription counts as past due.
pub(super) fn status(
    subscription: &Subscription,
    has_payment_method: bool,
    has_failed_invoice: bool,
) -> Result<SubscriptionStatus, PayprovError> {
    use SubscriptionStatus as S;
    let status = match subscription.status.as_str() {
        "trialing" if has_payment_method => S::Active,
        "trialing" => S::Trialing,
        "active" => S::Active,
        "past_due" | "incomplete" | "paused" => S::PastDue,
        "unpaid" => S::Unpaid,
        "canceled" | "incomplete_expired" => S::Canceled,
        _ => {
            let text = "a subscription has a status of no known name";
            return Err(PayprovError::Nonsense(text.to_owned()));
        }
    };
    match status {
        S::Active | S::Trialing if has_failed_invoice => Ok(S::PastDue),
        status => Ok(status),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    fn subscription(id: &str, status: &str, created: i64) -> Subscription {
        serde_json::from_value(json!({
            "id": id, "status": status, "customer": "cus_1", "created": created,
            "items": { "data": [{ "id": "si_1", "quantity": 2 }] },
        }))
        .unwrap()
    }

    #[test]
    fn the_providers_words() {
        use SubscriptionStatus as S;
        for (word, paying, failed, expected) in [
            ("trialing", false, false, Some(S::Trialing)),
            ("trialing", true, false, Some(S::Active)),
            ("trialing", true, true, Some(S::PastDue)),
            ("active", false, false, Some(S::Active)),
            ("active", true, true, Some(S::PastDue)),
            ("past_due", true, false, Some(S::PastDue)),
            ("incomplete", true, false, Some(S::PastDue)),
            ("paused", true, false, Some(S::PastDue)),
            ("unpaid", true, true, Some(S::Unpaid)),
            ("canceled", true, true, Some(S::Canceled)),
            ("incomplete_expired", false, false, Some(S::Canceled)),
            ("else", false, false, None),
        ] {
            let subscription = subscription("sub_1", word, 1);
            assert_eq!(
                status(&subscription, paying, failed).ok(),
                expected,
                "{word}"
            );
        }
    }

    #[test]
    fn others_live_beside_one_that_lives_and_bill_the_same() {
        let of = |id: &str, status: &str, price: &str| -> Subscription {
            serde_json::from_value(json!({
                "id": id, "status": status, "customer": "cus_1", "created": 1,
                "items": { "data": [{ "id": "si_1", "price": { "id": price } }] },
            }))
            .unwrap()
        };
        let all = [
            of("sub_a", "active", "price_1"),
            of("sub_b", "past_due", "price_1"),
            of("sub_c", "canceled", "price_1"),
            of("sub_d", "active", "price_of_something_else"),
            of("sub_e", "incomplete_expired", "price_1"),
        ];
        assert_eq!(others(&all, &all[0], "price_1"), ["sub_b"]);
        assert_eq!(others(&all, &all[1], "price_1"), ["sub_a"]);
        assert!(others(&all, &all[2], "price_1").is_empty());
        let many: Vec<Subscription> = (0..50)
            .map(|number| of(&format!("sub_{number}"), "active", "price_1"))
            .collect();
        assert_eq!(others(&many, &many[0], "price_1").len(), OTHERS);
    }
}
