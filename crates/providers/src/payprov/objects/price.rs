//! The price of a subscription's item.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::field::is_currency;
use super::reference::HasId;
use mailgate_types::billing_details::UnitPrice;
use mailgate_types::money::AmountDue;

/// A price.
#[derive(Debug, Clone, Deserialize)]
pub struct Price {
    /// `price_…`
    pub id: String,
    /// All else.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl HasId for Price {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Price {
    /// The fixed amount of one unit, if it has one: not if it is computed by tiers or by reported usage, for packages
    /// of several units, or in fractions of the smallest unit.
    #[must_use]
    pub fn unit(&self) -> Option<UnitPrice> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
        let is_or_missing = |value: Option<&Value>, word: &str| {
            value.is_none_or(|value| value.is_null() || value.as_str() == Some(word))
        };
        let recurring = self.fields.get("recurring")?;
        let packages = self.fields.get("transform_quantity");
        if !is_or_missing(self.fields.get("billing_scheme"), "per_unit")
            || !is_or_missing(recurring.get("usage_type"), "licensed")
            || packages.is_some_and(|packages| !packages.is_null())
        {
            return None;
        }
        let minor_units = self.fields.get("unit_amount")?.as_i64()?;
        let currency = text(self.fields.get("currency")).filter(|code| is_currency(code))?;
        let interval = text(recurring.get("interval"))?;
        let is_known = matches!(interval.as_str(), "day" | "week" | "month" | "year");
        let count = recurring
            .get("interval_count")
            .map_or(Some(1), Value::as_u64);
        let interval_count = u32::try_from(count?).ok().filter(|count| *count > 0)?;
        (is_known && minor_units >= 0).then_some(UnitPrice {
            amount: AmountDue {
                minor_units,
                currency,
            },
            interval,
            interval_count,
            is_adjusted: false,
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_fixed_amount_is_one() {
        let price = |change: Value| {
            let mut value = json!({
                "id": "price_1", "object": "price", "currency": "eur", "unit_amount": 500,
                "unit_amount_decimal": "500", "billing_scheme": "per_unit", "tiers_mode": null,
                "transform_quantity": null, "recurring": { "interval": "month",
                "interval_count": 1, "usage_type": "licensed", "meter": null },
            });
            for (name, changed) in change.as_object().unwrap() {
                value[name] = changed.clone();
            }
            serde_json::from_value::<Price>(value).unwrap().unit()
        };
        let unit = price(json!({})).unwrap();
        assert_eq!(
            (unit.amount.with_code(), unit.interval_count),
            ("5.00 EUR".to_owned(), 1)
        );
        assert_eq!(unit.interval, "month");
        assert!(price(json!({ "billing_scheme": null })).is_some());
        for none in [
            json!({ "unit_amount": null, "billing_scheme": "tiered" }),
            json!({ "unit_amount": null, "unit_amount_decimal": "0.5" }),
            json!({ "unit_amount": "500" }),
            json!({ "unit_amount": -1 }),
            json!({ "unit_amount": 500.5 }),
            json!({ "billing_scheme": "to_come" }),
            json!({ "transform_quantity": { "divide_by": 10, "round": "up" } }),
            json!({ "currency": null }),
            json!({ "currency": "euro" }),
            json!({ "recurring": null }),
            json!({ "recurring": "month" }),
            json!({ "recurring": { "interval": "fortnight" } }),
            json!({ "recurring": { "interval": "month", "interval_count": 0 } }),
            json!({ "recurring": { "interval": "month", "usage_type": "metered" } }),
        ] {
            assert_eq!(price(none.clone()), None, "{none}");
        }
    }
}
