//! An invoice, as any version of the API writes it.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::field::{currency, id, moment, page};
use super::reference::{IdOnly, Reference};

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
    /// In the currency's smallest unit.
    #[serde(default)]
    pub amount_due: i64,
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
