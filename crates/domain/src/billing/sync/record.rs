//! Writes the provider's state of a customer to its account.

use crate::billing::lifecycle::{Trigger, transition};
use crate::billing::snapshot::ProviderSnapshot;
use mailgate_storage::subscribers::billing::BillingAccount;
use mailgate_types::subscription::SubscriptionStatus;

/// Writes the fetched state to the account. A different subscription replaces the known one only if that has ended, and
/// only if it isn't older.
pub(super) fn record(account: &mut BillingAccount, seen: &ProviderSnapshot, price: &str) {
    let subscription = &seen.subscription;
    if account.subscription_id.as_ref() != Some(&subscription.id) {
        // As stored, or as this very fetch has found it.
        let has_ended = account.status == Some(SubscriptionStatus::Canceled)
            || (seen.instead_of.is_some() && seen.instead_of == account.subscription_id);
        let is_later = subscription.created >= account.subscription_created_at;
        let replaces = has_ended && is_later && !seen.has_ended();
        if account.subscription_id.is_some() && !replaces {
            return;
        }
        tracing::info!(
            subscriber_id = %account.subscriber,
            subscription_id = subscription.id,
            "the subscriber has a new subscription"
        );
        if has_ended {
            account.status = None;
        }
        account.subscription_id = Some(subscription.id.clone());
        account.subscription_created_at = subscription.created;
    }
    let trigger = trigger(account, seen);
    // An unknown transition leaves the status unchanged; an update from the provider is always known.
    if let Ok(transition) = transition(account.status, trigger) {
        if account.status != transition.to {
            tracing::info!(
                subscriber_id = %account.subscriber,
                subscription_id = subscription.id,
                from = account.status.map(SubscriptionStatus::as_str),
                to = transition.to.map(SubscriptionStatus::as_str),
                ?trigger,
                "a subscription has another status"
            );
        }
        account.status = transition.to;
    }
    account.trial_end = subscription.trial_end;
    account.current_period_end = subscription.current_period_end();
    account.cancel_at_period_end = subscription.is_canceled();
    account.billed_quantity = subscription.item(price).and_then(|item| item.quantity);
    account.failed_invoice_id = seen
        .failed_invoice
        .as_ref()
        .map(|invoice| invoice.id.clone());
    report_others(account, seen);
}

/// Reports, when it changes, that a customer is charged for more than one subscription. The operator must decide which
/// one is wrong.
fn report_others(account: &mut BillingAccount, seen: &ProviderSnapshot) {
    if account.other_subscription_ids == seen.others {
        return;
    }
    let (subscriber, subscription) = (account.subscriber, &seen.subscription.id);
    if seen.others.is_empty() {
        tracing::info!(subscriber_id = %subscriber, subscription_id = subscription, "the subscriber has one living subscription again");
    } else {
        let others = seen.others.join(" ");
        tracing::error!(subscriber_id = %subscriber, subscription_id = subscription, others, "the subscriber has more than one living subscription at the payment provider, and is charged for each");
    }
    account.other_subscription_ids.clone_from(&seen.others);
}

/// The trigger, derived from the stored and the fetched state.
fn trigger(account: &BillingAccount, seen: &ProviderSnapshot) -> Trigger {
    use SubscriptionStatus as S;
    match (account.status, seen.status) {
        (Some(_), S::Canceled) if account.cancel_at_period_end => Trigger::PeriodEnded,
        (Some(S::Trialing), S::Canceled) => Trigger::TrialEnded,
        (_, S::Canceled) => Trigger::Deleted,
        (Some(S::Trialing), S::Active) if seen.in_trial() => Trigger::PaymentMethodAdded,
        (Some(S::Trialing | S::PastDue | S::Unpaid), S::Active) => Trigger::PaymentSucceeded,
        (_, status) => Trigger::Updated(status),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::billing::snapshot;
    use crate::billing::sync::fuzzing::new_account;
    use mailgate_types::billing_details::BillingDetails;
    use serde_json::json;

    fn seen(id: &str, status: &str, created: i64) -> ProviderSnapshot {
        let subscription = json!({
            "id": id, "status": status, "customer": "cus_1", "created": created,
            "items": { "data": [{ "id": "si_1", "quantity": 2 }] },
        });
        let subscription = serde_json::from_value(subscription).unwrap();
        ProviderSnapshot {
            status: snapshot::status(&subscription, false, false).unwrap(),
            subscription,
            instead_of: None,
            has_payment_method: false,
            failed_invoice: None,
            others: Vec::new(),
            details: BillingDetails::default(),
            is_due_known: false,
        }
    }

    fn account() -> BillingAccount {
        BillingAccount {
            customer_id: Some("cus_1".to_owned()),
            status: Some(SubscriptionStatus::Trialing),
            ..new_account()
        }
    }

    #[test]
    fn only_a_later_subscription_takes_the_place_of_one_that_has_ended() {
        use SubscriptionStatus as S;
        let mut account = account();
        let mut step = |id: &str, status: &str, created| {
            record(&mut account, &seen(id, status, created), "price_1");
            (account.subscription_id.clone().unwrap(), account.status)
        };
        let is = |id: &str, status| (id.to_owned(), Some(status));
        assert_eq!(step("sub_b", "active", 20), is("sub_b", S::Active));
        assert_eq!(
            step("sub_c", "past_due", 30),
            is("sub_b", S::Active),
            "another"
        );
        assert_eq!(step("sub_b", "canceled", 20), is("sub_b", S::Canceled));
        assert_eq!(
            step("sub_b", "active", 20),
            is("sub_b", S::Canceled),
            "revived"
        );
        assert_eq!(
            step("sub_a", "active", 10),
            is("sub_b", S::Canceled),
            "older"
        );
        assert_eq!(
            step("sub_c", "canceled", 30),
            is("sub_b", S::Canceled),
            "ended"
        );
        assert_eq!(step("sub_c", "past_due", 30), is("sub_c", S::PastDue));
    }

    #[test]
    fn an_end_and_a_new_beginning_may_be_seen_at_once() {
        for (instead_of, replaced) in [(None, false), (Some("sub_x"), false), (Some("sub_a"), true)]
        {
            let mut account = account();
            record(&mut account, &seen("sub_a", "active", 10), "price_1");
            let next = ProviderSnapshot {
                instead_of: instead_of.map(str::to_owned),
                ..seen("sub_b", "past_due", 20)
            };
            record(&mut account, &next, "price_1");
            let is_next = account.subscription_id.as_deref() == Some("sub_b");
            assert_eq!(is_next, replaced, "{instead_of:?}");
            assert_eq!(
                account.status == Some(SubscriptionStatus::PastDue),
                replaced
            );
        }
    }
}
