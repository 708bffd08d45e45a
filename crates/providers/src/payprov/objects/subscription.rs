//! A subscription, as any version of the API writes it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::customer::Customer;
use super::field::{id, moment};
use super::payment_method::PaymentMethod;
use super::price::Price;
use super::reference::Reference;
use super::{List, Metadata};
use mailgate_types::billing_details::UnitPrice;

/// A subscription.
#[derive(Debug, Clone, Deserialize)]
pub struct Subscription {
    /// `sub_…`
    #[serde(deserialize_with = "id")]
    pub id: String,
    /// The provider's status.
    pub status: String,
    /// The customer; expanded if requested.
    pub customer: Reference<Customer>,
    /// When it was created.
    #[serde(default, deserialize_with = "moment")]
    pub created: Option<DateTime<Utc>>,
    /// When the trial ends or ended.
    #[serde(default, deserialize_with = "moment")]
    pub trial_end: Option<DateTime<Utc>>,
    /// Its location in versions before 2025-03-31.
    #[serde(default, deserialize_with = "moment")]
    current_period_end: Option<DateTime<Utc>>,
    /// It ends with the period.
    #[serde(default)]
    pub cancel_at_period_end: bool,
    /// When it is scheduled to end.
    #[serde(default, deserialize_with = "moment")]
    pub cancel_at: Option<DateTime<Utc>>,
    /// The billed items.
    pub items: List<SubscriptionItem>,
    /// Its own payment method, which takes precedence over the customer's.
    #[serde(default)]
    pub default_payment_method: Option<Reference<PaymentMethod>>,
    /// Three letters; a price may have amounts in several currencies.
    #[serde(default)]
    currency: Value,
    /// What changes the amounts of its invoices: discounts as older and newer versions have them, and taxes.
    #[serde(default)]
    discount: Value,
    #[serde(default)]
    discounts: Value,
    #[serde(default)]
    default_tax_rates: Value,
    #[serde(default)]
    automatic_tax: Value,
    /// Our metadata.
    #[serde(default)]
    pub metadata: Metadata,
}

/// An item of a subscription.
#[derive(Debug, Clone, Deserialize)]
pub struct SubscriptionItem {
    /// `si_…`
    pub id: String,
    /// The quantity.
    #[serde(default)]
    pub quantity: Option<i64>,
    /// Its location in versions from 2025-03-31 on.
    #[serde(default, deserialize_with = "moment")]
    current_period_end: Option<DateTime<Utc>>,
    /// The price of one.
    #[serde(default)]
    pub price: Option<Reference<Price>>,
    /// What changes the amount of this item.
    #[serde(default)]
    discounts: Value,
    #[serde(default)]
    tax_rates: Value,
}

impl Subscription {
    /// Whether it has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.status.as_str(), "canceled" | "incomplete_expired")
    }

    /// Whether it is scheduled to be cancelled: at the end of its period, or at a date, as the customer portal does for
    /// some subscriptions.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.cancel_at_period_end || self.cancel_at.is_some()
    }

    /// Whether it bills mailboxes: it has our price, or our metadata. The operator may sell the same customer other
    /// things.
    #[must_use]
    pub fn is_of_mailboxes(&self, price: &str) -> bool {
        let has_price =
            |item: &SubscriptionItem| item.price.as_ref().is_some_and(|it| it.id() == price);
        self.metadata.mailgate_subscriber.is_some() || self.items.data.iter().any(has_price)
    }

    /// The end of the current period, wherever this version of the API has it.
    #[must_use]
    pub fn current_period_end(&self) -> Option<DateTime<Utc>> {
        let of_items = self.items.data.iter().map(|item| item.current_period_end);
        self.current_period_end.or_else(|| of_items.flatten().max())
    }

    /// The item for mailboxes: the one with our price, else the first.
    #[must_use]
    pub fn item(&self, price: &str) -> Option<&SubscriptionItem> {
        let is_ours =
            |item: &&SubscriptionItem| item.price.as_ref().is_some_and(|other| other.id() == price);
        let items = &self.items.data;
        items.iter().find(is_ours).or_else(|| items.first())
    }

    /// The price of one mailbox, if it is a fixed amount of the subscription's currency.
    #[must_use]
    pub fn unit_price(&self, price: &str) -> Option<UnitPrice> {
        let item = self.item(price)?;
        let Reference::Object(found) = item.price.as_ref()? else {
            return None;
        };
        let unit = found.unit()?;
        let currency = self.currency.as_str().unwrap_or(&unit.amount.currency);
        if !unit.amount.currency.eq_ignore_ascii_case(currency) {
            return None;
        }
        let some = |value: &Value| match value {
            Value::Null => false,
            Value::Array(all) => !all.is_empty(),
            _ => true,
        };
        let adjusting = [
            &self.discount,
            &self.discounts,
            &self.default_tax_rates,
            &item.discounts,
            &item.tax_rates,
        ];
        let is_taxed = self.automatic_tax.get("enabled").and_then(Value::as_bool);
        let of_customer = match &self.customer {
            Reference::Object(customer) => customer.is_adjusted(),
            Reference::Id(_) => false,
        };
        let is_adjusted = of_customer
            || is_taxed == Some(true)
            || self.items.data.len() > 1
            || adjusting.into_iter().any(some);
        Some(UnitPrice {
            is_adjusted,
            ..unit
        })
    }

    /// The customer's id.
    #[must_use]
    pub fn customer_id(&self) -> &str {
        match &self.customer {
            Reference::Id(id) => id,
            Reference::Object(customer) => &customer.id,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use chrono::Datelike as _;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_cancellation_has_a_period_or_a_date() {
        for (at_period_end, cancel_at, is_canceled) in [
            (false, None, false),
            (true, Some(1_700_000_000), true),
            (true, None, true),
            // As the customer portal does it for some.
            (false, Some(1_700_000_000), true),
        ] {
            let subscription: Subscription = serde_json::from_value(json!({
                "id": "sub_1", "status": "active", "customer": "cus_1", "created": 5,
                "cancel_at_period_end": at_period_end, "cancel_at": cancel_at, "items": { "data": [] },
            }))
            .unwrap();
            assert_eq!(subscription.is_canceled(), is_canceled, "{subscription:?}");
        }
    }

    #[test]
    fn both_versions_of_a_subscription_are_read() {
        let older = json!({
            "id": "sub_1", "status": "active", "customer": "cus_1", "created": 5,
            "current_period_end": 1_700_000_000, "cancel_at_period_end": true,
            "items": { "data": [
                { "id": "si_0", "quantity": 9, "price": { "id": "price_other" } },
                { "id": "si_1", "quantity": 3, "price": { "id": "price_ours" } },
            ] },
        });
        let newer = json!({
            "id": "sub_1", "status": "active", "trial_end": null, "created": 5,
            "customer": { "id": "cus_1", "invoice_settings": { "default_payment_method": "pm_1" } },
            "items": { "data": [
                { "id": "si_1", "quantity": 3, "current_period_end": 1_700_000_000 },
            ] },
        });
        for (value, expanded) in [(older, false), (newer, true)] {
            let subscription: Subscription = serde_json::from_value(value).unwrap();
            let end = DateTime::from_timestamp(1_700_000_000, 0);
            assert_eq!(subscription.current_period_end(), end);
            assert_eq!(subscription.customer_id(), "cus_1");
            let item = subscription.item("price_ours").unwrap();
            assert_eq!((item.id.as_str(), item.quantity), ("si_1", Some(3)));
            let has_one = match &subscription.customer {
                Reference::Object(customer) => customer.has_payment_method(),
                Reference::Id(_) => false,
            };
            assert_eq!(has_one, expanded);
        }
    }

    #[test]
    fn what_bills_mailboxes() {
        for (metadata, price, expected) in [
            (json!({}), json!("price_ours"), true),
            (json!({}), json!({ "id": "price_ours" }), true),
            (
                json!({ "mailgate_subscriber": "sub_1" }),
                json!("price_before"),
                true,
            ),
            (json!({ "mailgate_subscriber": "sub_1" }), json!(null), true),
            (json!({ "other": "x" }), json!("price_other"), false),
            (json!({}), json!(null), false),
        ] {
            let subscription: Subscription = serde_json::from_value(json!({
                "id": "sub_1", "status": "active", "customer": "cus_1", "metadata": metadata,
                "items": { "data": [{ "id": "si_1", "price": price }] },
            }))
            .unwrap();
            let found = subscription.is_of_mailboxes("price_ours");
            assert_eq!(found, expected, "{metadata} {price}");
        }
    }

    #[test]
    fn a_price_is_of_its_currency_and_may_be_adjusted() {
        let unit = |change: Value| {
            let mut value = json!({
                "id": "sub_1", "status": "active", "customer": { "id": "cus_1" }, "currency": "eur",
                "discounts": [], "default_tax_rates": [], "automatic_tax": { "enabled": false },
                "items": { "data": [{ "id": "si_1", "price": { "id": "price_1", "currency": "eur",
                    "unit_amount": 500, "recurring": { "interval": "month" } } }] },
            });
            for (name, changed) in change.as_object().unwrap() {
                value[name] = changed.clone();
            }
            let subscription: Subscription = serde_json::from_value(value).unwrap();
            subscription
                .unit_price("price_1")
                .map(|unit| unit.is_adjusted)
        };
        for (change, expected) in [
            (json!({}), Some(false)),
            (
                json!({ "currency": null, "discounts": null, "automatic_tax": null }),
                Some(false),
            ),
            (json!({ "currency": "usd" }), None),
            (
                json!({ "items": { "data": [{ "id": "si_1", "price": "price_1" }] } }),
                None,
            ),
            (json!({ "items": { "data": [] } }), None),
            (json!({ "discount": { "id": "di_1" } }), Some(true)),
            (json!({ "discounts": ["di_1"] }), Some(true)),
            (
                json!({ "default_tax_rates": [{ "id": "txr_1" }] }),
                Some(true),
            ),
            (json!({ "automatic_tax": { "enabled": true } }), Some(true)),
            (
                json!({ "customer": { "id": "cus_1", "balance": -100 } }),
                Some(true),
            ),
            (
                json!({ "customer": { "id": "cus_1", "discount": null, "balance": 0 } }),
                Some(false),
            ),
        ] {
            assert_eq!(unit(change.clone()), expected, "{change}");
        }
    }

    proptest! {
        #[test]
        fn any_number_is_a_moment_of_this_calendar_or_none(integer: i64, large: u64, float: f64) {
            for number in [json!(integer), json!(large), json!(float)] {
                let value = json!({
                    "id": "sub_1", "status": "active", "customer": "cus_1", "created": number,
                    "trial_end": number, "current_period_end": number, "cancel_at": number,
                    "items": { "data": [{ "id": "si_1", "current_period_end": number }] },
                });
                let subscription: Subscription = serde_json::from_value(value).unwrap();
                for moment in [subscription.created, subscription.current_period_end()] {
                    let year = moment.map_or(1970, |moment| moment.year());
                    prop_assert!((1970..10_000).contains(&year));
                }
            }
        }
    }
}
