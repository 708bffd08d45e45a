//! What the portal shows of a subscription. Nothing depends on it, so a call of its own is short, and what it doesn't
//! bring is left out.

use std::time::Duration;

use tokio::time::timeout;

use super::ProviderSnapshot;
use mailgate_providers::payprov::objects::{Invoice, Reference};
use mailgate_providers::payprov::{PayprovClient, PayprovError};
use mailgate_types::billing_details::{BillingDetails, OpenAmount, Recipient, SavedPaymentMethod};
use mailgate_types::subscription::SubscriptionStatus;

/// Time limit for the extra calls, which run concurrently.
const PATIENCE: Duration = Duration::from_secs(1);

/// Completes a fetch with what is shown. While something is due, and after the end, that needs calls of its own: for
/// all that is open, and for the payment method entered last, by which a reactivation pays. Also whether what is open
/// is known.
pub(super) async fn details(
    client: &PayprovClient,
    seen: &ProviderSnapshot,
    customer: &str,
    known: Option<SavedPaymentMethod>,
) -> (BillingDetails, bool) {
    use SubscriptionStatus as S;
    let subscription = &seen.subscription;
    let is_due = matches!(seen.status, S::PastDue | S::Unpaid);
    let open = async {
        if !is_due {
            return None;
        }
        let invoices = optional(client.open_invoices(customer, &subscription.id)).await;
        invoices.map(|invoices| open(&invoices))
    };
    let method = async {
        if is_due || seen.has_ended() {
            let newest = optional(client.newest_payment_method(customer)).await;
            return newest.flatten().map(|method| method.saved());
        }
        // The subscription has only the id of its own one.
        match &subscription.default_payment_method {
            Some(Reference::Id(id)) => optional(client.payment_method(id))
                .await
                .map(|method| method.saved()),
            _ => None,
        }
    };
    let (open_now, method) = tokio::join!(open, method);
    let is_due_known = !is_due || open_now.is_some();
    let failed = seen.failed_invoice.as_ref().map(std::slice::from_ref);
    let due = open_now.unwrap_or_else(|| failed.and_then(self::open));
    let details = BillingDetails {
        price: subscription.unit_price(client.price()),
        payment_method: method.or(known),
        due: due.filter(|_| is_due),
        recipient: match &subscription.customer {
            Reference::Object(found) if found.id == customer => found.recipient(),
            _ => Recipient::default(),
        },
    };
    (details, is_due_known)
}

/// `None` if it fails, or takes too long.
async fn optional<T>(call: impl Future<Output = Result<T, PayprovError>>) -> Option<T> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::info!(%error, "a part of the billing page is missing");
            None
        }
        Err(_) => None,
    }
}

/// The sum of invoices, oldest first; `None` without one, or if their amounts have no sum that can be paid.
fn open(invoices: &[Invoice]) -> Option<OpenAmount> {
    let amounts: Option<Vec<_>> = invoices.iter().map(Invoice::remaining).collect();
    let amount = amounts?.into_iter().map(Some);
    let amount = amount.reduce(|sum, amount| sum?.plus(&amount?))??;
    if amount.minor_units <= 0 {
        return None;
    }
    Some(OpenAmount {
        amount,
        since: invoices.first().and_then(Invoice::finalized_at),
        is_failed: invoices.iter().any(Invoice::is_attempted),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn opened(invoices: Value) -> Option<OpenAmount> {
        open(&serde_json::from_value::<Vec<Invoice>>(invoices).unwrap())
    }

    #[test]
    fn what_is_open_is_a_sum_of_one_currency() {
        let invoice = |remaining: i64, currency: &str, attempted: bool, at: i64| {
            json!({ "id": "in_1", "status": "open", "amount_remaining": remaining, "created": 1,
                "currency": currency, "attempted": attempted, "status_transitions": { "finalized_at": at } })
        };
        let sum = opened(json!([
            invoice(500, "eur", true, 7),
            invoice(5_000, "eur", false, 9)
        ]))
        .unwrap();
        assert_eq!(sum.amount.with_code(), "55.00 EUR");
        assert_eq!((sum.since.unwrap().timestamp(), sum.is_failed), (7, true));
        assert!(
            !opened(json!([invoice(500, "eur", false, 7)]))
                .unwrap()
                .is_failed
        );
        for none in [
            json!([]),
            json!([invoice(-500, "eur", true, 7)]),
            json!([invoice(500, "eur", true, 7), invoice(500, "usd", true, 7)]),
            json!([invoice(500, "eur", true, 7), { "id": "in_2", "amount_due": null }]),
        ] {
            assert_eq!(opened(none.clone()), None, "{none}");
        }
    }
}
