//! The payment provider's objects, reduced to the fields that are used.

use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Longest id from the provider that is accepted, in bytes; Stripe asks for 255.
const ID_LENGTH: usize = 255;

/// Longest page URL that is stored, in bytes.
const PAGE_LENGTH: usize = 2_048;

/// Whether a string can be an id from the provider: it is used in paths and the database.
#[must_use]
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_LENGTH
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A reference, which the provider writes as an id, or as the whole object if expanded.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Reference<T> {
    /// The object's id.
    Id(String),
    /// The object itself.
    Object(Box<T>),
}

/// An object of which only the id is used.
#[derive(Debug, Clone, Deserialize)]
pub struct Identified {
    /// Its id.
    pub id: String,
}

/// A reference to an object of which only the id is used.
pub type IdOnly = Reference<Identified>;

impl Reference<Identified> {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Object(object) => &object.id,
        }
    }
}

/// One page of a list, newest first.
#[derive(Debug, Clone, Deserialize)]
pub struct List<T> {
    /// The objects.
    pub data: Vec<T>,
    /// Whether there are more.
    #[serde(default)]
    pub has_more: bool,
}

/// A customer.
#[derive(Debug, Clone, Deserialize)]
pub struct Customer {
    /// `cus_…`
    #[serde(deserialize_with = "id")]
    pub id: String,
    /// It has been deleted.
    #[serde(default)]
    pub deleted: bool,
    /// Its default payment settings.
    #[serde(default)]
    pub invoice_settings: InvoiceSettings,
    /// A payment source of the older kind.
    #[serde(default)]
    pub default_source: Option<IdOnly>,
    /// Our metadata.
    #[serde(default)]
    pub metadata: Metadata,
}

/// A customer's default payment settings.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct InvoiceSettings {
    /// The default payment method.
    #[serde(default)]
    pub default_payment_method: Option<IdOnly>,
}

/// Our metadata on an object.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Metadata {
    /// The subscriber that it belongs to.
    pub mailgate_subscriber: Option<String>,
}

impl Customer {
    /// Whether it has a payment method for its invoices.
    #[must_use]
    pub fn has_payment_method(&self) -> bool {
        self.invoice_settings.default_payment_method.is_some() || self.default_source.is_some()
    }
}

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
    pub default_payment_method: Option<IdOnly>,
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
    pub price: Option<IdOnly>,
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

    /// The customer's id.
    #[must_use]
    pub fn customer_id(&self) -> &str {
        match &self.customer {
            Reference::Id(id) => id,
            Reference::Object(customer) => &customer.id,
        }
    }
}

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

/// A payment method.
#[derive(Debug, Clone, Deserialize)]
pub struct PaymentMethod {
    /// `pm_…`
    pub id: String,
    /// When it was entered.
    #[serde(default, deserialize_with = "moment")]
    pub created: Option<DateTime<Utc>>,
}

/// A page hosted by the provider that a subscriber is sent to.
#[derive(Debug, Clone, Deserialize)]
pub struct HostedPage {
    /// Its URL.
    pub url: String,
}

/// An event, as the webhook receives it.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    /// `customer.subscription.updated` and the like.
    pub r#type: String,
    /// The data of the event.
    pub data: EventData,
}

/// The data of an event.
#[derive(Debug, Clone, Deserialize)]
pub struct EventData {
    /// The object as it was at the time.
    pub object: serde_json::Map<String, serde_json::Value>,
}

impl EventData {
    /// The id in a field, whether the object there is expanded or not.
    #[must_use]
    pub fn id(&self, field: &str) -> Option<&str> {
        let value = self.object.get(field)?;
        let id = value.get("id").unwrap_or(value).as_str()?;
        is_id(id).then_some(id)
    }

    /// The subscription of an invoice, wherever this version of the API has it.
    #[must_use]
    pub fn invoice_subscription(&self) -> Option<&str> {
        let newer = || {
            let details = self.object.get("parent")?.get("subscription_details")?;
            let value = details.get("subscription")?;
            value.get("id").unwrap_or(value).as_str()
        };
        self.id("subscription")
            .or_else(newer)
            .filter(|id| is_id(id))
    }
}

/// The start of the year 10000, beyond the range of calendars, in seconds since 1970.
const END_OF_TIME: i64 = 253_402_300_800;

/// A time in seconds since 1970; `None` if it is out of range for a subscription.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let seconds = Option::<serde_json::Number>::deserialize(deserializer)?;
    let seconds = seconds.and_then(|seconds| seconds.as_i64());
    let seconds = seconds.filter(|seconds| (0..END_OF_TIME).contains(seconds));
    Ok(seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)))
}

/// An id that is safe for paths and the database.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    if is_id(&id) {
        Ok(id)
    } else {
        Err(D::Error::custom("an id is none"))
    }
}

/// The three letters of a currency (ISO 4217), or none.
fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    Ok(if is_code { text } else { String::new() })
}

/// A page URL to store; `None` if it is too long or unsafe for the database.
fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| text.len() <= PAGE_LENGTH && !text.contains(char::is_control)))
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

    #[test]
    fn ids_that_fit_a_path() {
        for (text, good) in [
            ("cus_NffrFeUfNV2Hib", true),
            ("price-1", true),
            ("", false),
            ("../secrets", false),
            ("a b", false),
            ("ü", false),
            ("a\0", false),
        ] {
            assert_eq!(is_id(text), good, "{text:?}");
        }
        assert!(!is_id(&"a".repeat(256)));
    }
}
