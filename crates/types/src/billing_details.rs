//! What the payment provider says of a subscription beside its status. It is for people to read: nothing is decided by
//! it, and each part may be missing.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::money::AmountDue;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BillingDetails {
    /// The price of one mailbox; `None` if the provider computes it otherwise, as by tiers.
    pub price: Option<UnitPrice>,
    /// The payment method that the next payment is made with; `None`: there is none.
    pub payment_method: Option<SavedPaymentMethod>,
    /// What is open; `None`: nothing, or it isn't known.
    pub due: Option<OpenAmount>,
    /// Who gets the invoices.
    pub recipient: Recipient,
}

/// The price of one mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPrice {
    /// The amount.
    pub amount: AmountDue,
    /// `day`, `week`, `month` or `year`.
    pub interval: String,
    /// Every so many intervals.
    pub interval_count: u32,
    /// Discounts, taxes or other items apply, so that an invoice has another amount.
    pub is_adjusted: bool,
}

/// A payment method, as far as it may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedPaymentMethod {
    /// The provider's word: `card`, `sepa_debit`; empty if it isn't known.
    pub kind: String,
    /// The provider's word for a card's brand, or empty.
    pub brand: String,
    /// The last digits, or empty.
    pub last4: String,
    /// The year and month until the end of which a card is valid.
    pub expires: Option<(i32, u32)>,
}

/// What is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAmount {
    /// The sum of the open invoices.
    pub amount: AmountDue,
    /// The date of the oldest one.
    pub since: Option<DateTime<Utc>>,
    /// A payment was attempted, and failed.
    pub is_failed: bool,
}

/// Who gets the invoices; empty where it isn't known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recipient {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn details_survive_the_table_and_missing_parts() {
        let amount = AmountDue {
            minor_units: 500,
            currency: "eur".to_owned(),
        };
        let details = BillingDetails {
            price: Some(UnitPrice {
                amount: amount.clone(),
                interval: "month".to_owned(),
                interval_count: 1,
                is_adjusted: false,
            }),
            payment_method: Some(SavedPaymentMethod {
                expires: Some((2099, 12)),
                ..SavedPaymentMethod::default()
            }),
            due: Some(OpenAmount {
                amount,
                since: DateTime::from_timestamp(1_700_000_000, 0),
                is_failed: true,
            }),
            recipient: Recipient::default(),
        };
        let stored = serde_json::to_value(&details).unwrap();
        let read: BillingDetails = serde_json::from_value(stored).unwrap();
        assert_eq!(read, details);
        let empty: BillingDetails = serde_json::from_str("{}").unwrap();
        assert_eq!(empty, BillingDetails::default());
    }
}
