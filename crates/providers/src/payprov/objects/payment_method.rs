//! A payment method, of any type: for a card its brand, last digits and expiry, for others what they have of these.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::field::{any_moment, words};
use super::reference::{HasId, Reference};
use mailgate_types::billing_details::SavedPaymentMethod;

/// A payment method.
#[derive(Debug, Clone, Deserialize)]
pub struct PaymentMethod {
    /// `pm_…`
    pub id: String,
    /// When it was entered.
    #[serde(default, deserialize_with = "any_moment")]
    pub created: Option<DateTime<Utc>>,
    /// Its type, and an object of the type's name.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl HasId for PaymentMethod {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Longest text that is shown of a payment method.
const LENGTH: usize = 40;

impl PaymentMethod {
    /// What may be shown of it.
    #[must_use]
    pub fn saved(&self) -> SavedPaymentMethod {
        let kind = words(self.fields.get("type"), LENGTH);
        let details = self.fields.get(&kind);
        let of = |name: &str| details.and_then(|details| details.get(name));
        let last4 = words(of("last4"), 4);
        let year = of("exp_year").and_then(Value::as_i64);
        let month = of("exp_month").and_then(Value::as_u64);
        let expires = year.zip(month).and_then(|(year, month)| {
            let year = i32::try_from(year)
                .ok()
                .filter(|year| (2000..10_000).contains(year));
            let month = u32::try_from(month)
                .ok()
                .filter(|month| (1..=12).contains(month));
            year.zip(month)
        });
        SavedPaymentMethod {
            brand: words(of("brand"), LENGTH),
            last4: Some(last4)
                .filter(|digits| digits.chars().all(|digit| digit.is_ascii_alphanumeric()))
                .unwrap_or_default(),
            expires,
            kind,
        }
    }
}

impl Reference<PaymentMethod> {
    /// What may be shown of it: nothing, if only its id is known.
    #[must_use]
    pub fn saved(&self) -> SavedPaymentMethod {
        match self {
            Self::Id(_) => SavedPaymentMethod::default(),
            Self::Object(method) => method.saved(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn any_payment_method_is_read() {
        let saved = |kind: &str, brand: &str, last4: &str, expires| SavedPaymentMethod {
            kind: kind.to_owned(),
            brand: brand.to_owned(),
            last4: last4.to_owned(),
            expires,
        };
        for (value, expected) in [
            (json!("pm_1"), saved("", "", "", None)),
            (json!({ "id": "pm_1" }), saved("", "", "", None)),
            (
                json!({ "id": "pm_1", "type": "card", "created": 5, "card":
                    { "brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2099 } }),
                saved("card", "visa", "4242", Some((2099, 12))),
            ),
            // As a legacy source has it, and of types to come.
            (
                json!({ "id": "pm_1", "type": "card", "card": "visa" }),
                saved("card", "", "", None),
            ),
            (
                json!({ "id": "pm_1", "type": 7, "created": "now" }),
                saved("", "", "", None),
            ),
            (
                json!({ "id": "pm_1", "type": "sepa_debit", "sepa_debit": { "last4": "3000", "country": "DE" } }),
                saved("sepa_debit", "", "3000", None),
            ),
            (
                json!({ "id": "pm_1", "type": "card", "card":
                    { "brand": null, "last4": "<b>1", "exp_month": 13, "exp_year": 2099 } }),
                saved("card", "", "", None),
            ),
            (
                json!({ "id": "pm_1", "type": "card", "card": { "brand": "a\u{0}b", "exp_month": -1 } }),
                saved("card", "ab", "", None),
            ),
        ] {
            let read: Reference<PaymentMethod> = serde_json::from_value(value.clone()).unwrap();
            assert_eq!((read.id(), read.saved()), ("pm_1", expected), "{value}");
        }
    }
}
