//! The fuzz target of the payment provider's state of a customer.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::record::record;
use super::{EVERY_ENDED, next_look};
use crate::billing::snapshot::{ProviderSnapshot, status};
use mailgate_providers::payprov::objects::{Invoice, Subscription};
use mailgate_storage::subscribers::billing::BillingAccount;
use mailgate_types::billing_details::BillingDetails;
use mailgate_types::fuzzing::Input;
use mailgate_types::ids::SubscriberId;

/// Applies a sequence of subscriptions: an ended one never revives, and whatever its dates are, the next fetch is due
/// within a day.
pub fn billing_looks(data: &[u8]) {
    let mut input = Input::new(data);
    let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap_or_default();
    let options = input.byte();
    let mut account = new_account();
    let mut ended: Option<String> = None;
    for json in input.rest().split(|byte| *byte == b'\n') {
        let failed_invoice: Option<Invoice> = serde_json::from_slice(json).ok();
        let Ok(subscription) = serde_json::from_slice::<Subscription>(json) else {
            continue;
        };
        let (pays, failed) = (
            options & 1 == 1,
            failed_invoice.is_some() && options & 2 == 2,
        );
        let Ok(status) = status(&subscription, pays, failed) else {
            continue;
        };
        let known = account.subscription_id.clone();
        let seen = ProviderSnapshot {
            instead_of: known.filter(|known| options & 4 == 4 && *known != subscription.id),
            subscription,
            status,
            has_payment_method: pays,
            failed_invoice: failed_invoice.filter(|_| failed),
            others: Vec::new(),
            details: BillingDetails::default(),
            is_due_known: false,
        };
        record(&mut account, &seen, "price_1");
        let is_ended = account
            .status
            .map(mailgate_types::subscription::SubscriptionStatus::as_str)
            == Some("canceled");
        if ended.is_some() && ended == account.subscription_id {
            assert!(is_ended, "{ended:?} revived");
        }
        ended = account.subscription_id.clone().filter(|_| is_ended);
        check_next(&account, now);
    }
}

fn check_next(account: &BillingAccount, now: DateTime<Utc>) {
    let next = next_look(account, now);
    assert!(next > now && next <= now + EVERY_ENDED, "{next}");
}

/// The account of a subscriber of whom nothing is known yet.
pub(super) fn new_account() -> BillingAccount {
    BillingAccount {
        subscriber: SubscriberId(Uuid::nil()),
        label: String::new(),
        email: String::new(),
        customer_id: None,
        status: None,
        subscription_id: None,
        subscription_created_at: None,
        trial_end: None,
        current_period_end: None,
        grace_ends_at: None,
        cancel_at_period_end: false,
        billed_quantity: None,
        failed_invoice_id: None,
        other_subscription_ids: Vec::new(),
        look: 1,
        applied_look: 0,
        is_deleted: false,
        renewal_stopped: false,
    }
}
