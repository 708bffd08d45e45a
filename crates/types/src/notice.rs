//! What a subscriber is told about its subscription by mail.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An amount that is due, as the provider counts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountDue {
    /// In the currency's smallest unit.
    pub minor_units: i64,
    /// Three letters in lower case (ISO 4217).
    pub currency: String,
}

/// What a notice tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A payment failed: sending is blocked until the payment method is updated.
    PaymentFailed {
        /// What is due.
        amount_due: AmountDue,
        /// The provider's page where the invoice can be paid, where there is one.
        payment_url: Option<String>,
        /// When the provider tries again by itself, if it does.
        next_attempt: Option<DateTime<Utc>>,
    },
    /// A payment waits for its owner to confirm it.
    PaymentActionRequired {
        /// What is due.
        amount_due: AmountDue,
        /// The provider's page where the payment is confirmed, where there is one.
        payment_url: Option<String>,
    },
    /// The trial is about to end.
    TrialWillEnd {
        /// When.
        trial_end: DateTime<Utc>,
        /// Whether there is a payment method, so that the subscription goes on by itself.
        has_payment_method: bool,
    },
}

impl Notice {
    /// The word that it is stored under.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PaymentFailed { .. } => "payment_failed",
            Self::PaymentActionRequired { .. } => "payment_action_required",
            Self::TrialWillEnd { .. } => "trial_will_end",
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_notice_survives_the_table() {
        let amount_due = AmountDue {
            minor_units: 1_200,
            currency: "eur".to_owned(),
        };
        for notice in [
            Notice::PaymentFailed {
                amount_due: amount_due.clone(),
                payment_url: None,
                next_attempt: DateTime::from_timestamp(1_700_000_000, 0),
            },
            Notice::PaymentActionRequired {
                amount_due,
                payment_url: Some("https://pay.example/in_1".to_owned()),
            },
            Notice::TrialWillEnd {
                trial_end: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
                has_payment_method: false,
            },
        ] {
            let stored = serde_json::to_value(&notice).unwrap();
            assert_eq!(stored["kind"], notice.kind());
            assert_eq!(serde_json::from_value::<Notice>(stored).unwrap(), notice);
        }
    }
}
