//! An invoice, as any version of the API writes it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::field::{any_moment, currency, id, moment, page, words};
use super::reference::{IdOnly, Reference};
use mailgate_types::money::AmountDue;

/// Longest number that is shown, in bytes.
const NUMBER: usize = 60;

/// An invoice.
#[derive(Debug, Clone, Deserialize)]
pub struct Invoice {
    /// `in_…`
    #[serde(deserialize_with = "id")]
    pub id: String,
    /// `draft`, `open`, `paid`, `void`, `uncollectible`.
    #[serde(default)]
    pub status: Option<String>,
    /// The customer.
    #[serde(default)]
    pub customer: Option<IdOnly>,
    /// Its location in versions before 2025-03-31.
    #[serde(default)]
    subscription: Option<IdOnly>,
    /// Its location in versions from 2025-03-31 on.
    #[serde(default)]
    parent: Option<InvoiceParent>,
    /// In the currency's smallest unit; not a number if it has none.
    #[serde(default)]
    amount_due: Value,
    /// What is left of it.
    #[serde(default)]
    amount_remaining: Value,
    /// All of it, before payments.
    #[serde(default)]
    total: Value,
    /// The number that its recipient reads.
    #[serde(default)]
    number: Value,
    /// Whether a payment was attempted.
    #[serde(default)]
    attempted: Value,
    /// When its status changed.
    #[serde(default)]
    status_transitions: Value,
    /// Three letters; empty if invalid.
    #[serde(default, deserialize_with = "currency")]
    pub currency: String,
    /// The page on which it can be paid.
    #[serde(default, deserialize_with = "page")]
    pub hosted_invoice_url: Option<String>,
    /// When the provider tries to collect it again.
    #[serde(default, deserialize_with = "moment")]
    pub next_payment_attempt: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(default, deserialize_with = "moment")]
    pub created: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Deserialize)]
struct InvoiceParent {
    #[serde(default)]
    subscription_details: Option<SubscriptionDetails>,
}

#[derive(Debug, Clone, Deserialize)]
struct SubscriptionDetails {
    #[serde(default)]
    subscription: Option<IdOnly>,
}

impl Invoice {
    /// The id of its subscription, wherever this version of the API has it.
    #[must_use]
    pub fn subscription_id(&self) -> Option<&str> {
        let newer = || {
            let details = self.parent.as_ref()?.subscription_details.as_ref()?;
            details.subscription.as_ref()
        };
        let subscription = self.subscription.as_ref().or_else(newer);
        subscription.map(Reference::id)
    }

    /// The amount due; zero if it has none.
    #[must_use]
    pub fn amount_due(&self) -> i64 {
        self.amount_due.as_i64().unwrap_or_default()
    }

    /// What is left to pay.
    #[must_use]
    pub fn remaining(&self) -> Option<AmountDue> {
        let left = self.amount_remaining.as_i64();
        self.amount(left.or_else(|| self.amount_due.as_i64()))
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Option<AmountDue> {
        self.amount(self.total.as_i64().or_else(|| self.amount_due.as_i64()))
    }

    fn amount(&self, minor_units: Option<i64>) -> Option<AmountDue> {
        let currency = Some(self.currency.clone()).filter(|currency| !currency.is_empty())?;
        Some(AmountDue {
            minor_units: minor_units?,
            currency,
        })
    }

    /// Its number, or nothing.
    #[must_use]
    pub fn number(&self) -> String {
        words(Some(&self.number), NUMBER)
    }

    /// When it was finalized, which is when its payment is first attempted; else when it was created.
    #[must_use]
    pub fn finalized_at(&self) -> Option<DateTime<Utc>> {
        let at = self.status_transitions.get("finalized_at").cloned();
        at.and_then(|at| any_moment(at).ok().flatten())
            .or(self.created)
    }

    /// Whether a payment was attempted; while it is open, that failed.
    #[must_use]
    pub fn is_attempted(&self) -> bool {
        self.attempted.as_bool().unwrap_or_default()
    }

    /// Whether it is awaiting payment.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.as_deref() == Some("open")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::payprov::objects::EventData;
    use serde_json::json;

    #[test]
    fn both_versions_of_an_invoice_are_read() {
        for value in [
            json!({ "id": "in_1", "status": "open", "subscription": "sub_1" }),
            json!({ "id": "in_1", "status": "open", "subscription": { "id": "sub_1" } }),
            json!({ "id": "in_1", "status": "open", "parent": {
                "subscription_details": { "subscription": "sub_1" } } }),
        ] {
            let invoice: Invoice = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(invoice.subscription_id(), Some("sub_1"), "{value}");
            assert!(invoice.is_open());
            let object = value.as_object().unwrap().clone();
            assert_eq!(EventData { object }.invoice_subscription(), Some("sub_1"));
        }
        let other: Invoice =
            serde_json::from_value(json!({ "id": "in_1", "parent": null, "status": null }))
                .unwrap();
        assert_eq!(other.subscription_id(), None);
        assert!(!other.is_open());
    }

    #[test]
    fn what_it_says_to_its_reader_may_be_missing() {
        let invoice: Invoice = serde_json::from_value(json!({
            "id": "in_1", "currency": "eur", "amount_due": 5_500, "amount_remaining": 5_000,
            "total": 6_000, "number": "A-1", "attempted": true, "created": 5,
            "status_transitions": { "finalized_at": 7, "paid_at": null },
        }))
        .unwrap();
        let text = |amount: Option<AmountDue>| amount.map(|amount| amount.with_code());
        assert_eq!(text(invoice.remaining()).unwrap(), "50.00 EUR");
        assert_eq!(text(invoice.total()).unwrap(), "60.00 EUR");
        assert_eq!(
            (invoice.number().as_str(), invoice.is_attempted()),
            ("A-1", true)
        );
        assert_eq!(invoice.finalized_at().unwrap().timestamp(), 7);
        for value in [
            json!({ "id": "in_1" }),
            json!({ "id": "in_1", "currency": null, "amount_due": null, "amount_remaining": null,
                "total": null, "number": null, "attempted": null, "status_transitions": null }),
            json!({ "id": "in_1", "currency": "eur", "amount_due": "5", "amount_remaining": [],
                "total": {}, "number": 7, "attempted": "yes", "status_transitions": "x" }),
        ] {
            let odd: Invoice = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(
                (odd.remaining(), odd.total(), odd.amount_due()),
                (None, None, 0),
                "{value}"
            );
            assert_eq!((odd.number().as_str(), odd.is_attempted()), ("", false));
            assert_eq!(odd.finalized_at(), None);
        }
    }

    #[test]
    fn what_no_row_holds_is_left_out() {
        let invoice = |value| serde_json::from_value::<Invoice>(value);
        let odd = invoice(json!({
            "id": "in_1", "created": 9_000_000_000_000_000_i64, "next_payment_attempt": -1,
            "currency": "e\u{0}r", "hosted_invoice_url": "https://x/\u{0}", "amount_due": i64::MIN,
        }))
        .unwrap();
        assert_eq!((odd.created, odd.next_payment_attempt), (None, None));
        assert_eq!((odd.currency.as_str(), odd.hosted_invoice_url), ("", None));
        for id in ["", "in_\u{0}", "../in_1"] {
            assert!(invoice(json!({ "id": id })).is_err(), "{id:?}");
        }
    }
}
