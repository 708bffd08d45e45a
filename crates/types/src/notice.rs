//! Notices that are mailed to a subscriber.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::email_change::EmailChangeStep;

/// An amount due, as the provider reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountDue {
    /// In the currency's smallest unit.
    pub minor_units: i64,
    /// Three letters in lower case (ISO 4217).
    pub currency: String,
}

/// The content of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A payment failed: sending is blocked until the payment method is updated.
    PaymentFailed {
        /// The amount due.
        amount_due: AmountDue,
        /// The provider's page for paying the invoice, if there is one.
        payment_url: Option<String>,
        /// When the provider retries by itself, if it does.
        next_attempt: Option<DateTime<Utc>>,
    },
    /// A payment needs confirmation by its owner.
    PaymentActionRequired {
        /// The amount due.
        amount_due: AmountDue,
        /// The provider's page for confirming the payment, if there is one.
        payment_url: Option<String>,
    },
    /// The trial is about to end.
    TrialWillEnd {
        /// When it ends.
        trial_end: DateTime<Utc>,
        /// Whether there is a payment method, so that the subscription continues by itself.
        has_payment_method: bool,
    },
    /// The API secret was renewed.
    ApiSecretRenewed {
        /// When.
        at: DateTime<Utc>,
        /// The client's address; `None`: the operator's command line.
        address: Option<IpAddr>,
        /// The recipient: the account's address at the renewal, or one that it had shortly before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// What links are mailed there.
        #[serde(default)]
        reader: RenewalReader,
    },
    /// The operator has suspended the account: nothing is sent until it is resumed.
    AccountSuspended {
        /// When, or since when the reason is this one.
        at: DateTime<Utc>,
        /// Why.
        reason: String,
    },
    /// The operator has resumed the account.
    AccountResumed {
        /// When.
        at: DateTime<Utc>,
    },
    /// The account's address is to change, or has.
    EmailChange {
        /// How far it is.
        step: EmailChangeStep,
        /// Its id.
        id: Uuid,
        /// The address that is replaced.
        former_email: String,
        /// The address that replaces it.
        email: String,
        /// When this step was made.
        at: DateTime<Utc>,
        /// The client's address.
        address: Option<IpAddr>,
    },
}

/// The recipient of a notice about a renewed API secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenewalReader {
    /// Who reads the account's address: a link that is mailed there renews the secret too.
    #[default]
    Established,
    /// Who reads an address that it has had for a short time: by a link the secret isn't renewed.
    New,
    /// Who reads the one before that: it can be taken back.
    Former,
}

impl Notice {
    /// The name that it is stored under.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PaymentFailed { .. } => "payment_failed",
            Self::PaymentActionRequired { .. } => "payment_action_required",
            Self::TrialWillEnd { .. } => "trial_will_end",
            Self::ApiSecretRenewed { .. } => "api_secret_renewed",
            Self::AccountSuspended { .. } => "account_suspended",
            Self::AccountResumed { .. } => "account_resumed",
            Self::EmailChange { .. } => "email_change",
        }
    }

    /// Who is told, if it isn't whatever address the account has when the mail is sent.
    #[must_use]
    pub fn recipient(&self) -> Option<&str> {
        match self {
            Self::PaymentFailed { .. }
            | Self::PaymentActionRequired { .. }
            | Self::TrialWillEnd { .. }
            | Self::AccountSuspended { .. }
            | Self::AccountResumed { .. } => None,
            Self::ApiSecretRenewed { to, .. } => to.as_deref(),
            Self::EmailChange {
                step,
                former_email,
                email,
                ..
            } => Some(match step {
                EmailChangeStep::Confirm => email,
                EmailChangeStep::Requested
                | EmailChangeStep::Changed
                | EmailChangeStep::ChangedAgain
                | EmailChangeStep::Restored
                | EmailChangeStep::Set => former_email,
            }),
        }
    }

    /// Whether it is about payments, of which a subscriber hears nowhere else.
    #[must_use]
    pub const fn is_of_payments(&self) -> bool {
        !matches!(
            self,
            Self::ApiSecretRenewed { .. }
                | Self::AccountSuspended { .. }
                | Self::AccountResumed { .. }
                | Self::EmailChange { .. }
        )
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
            Notice::ApiSecretRenewed {
                at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
                address: Some(IpAddr::from([203, 0, 113, 7])),
                to: None,
                reader: RenewalReader::Former,
            },
            Notice::AccountSuspended {
                at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
                reason: "Complaints".to_owned(),
            },
            Notice::AccountResumed {
                at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
            },
            Notice::EmailChange {
                step: EmailChangeStep::Changed,
                id: Uuid::nil(),
                former_email: "old@example.com".to_owned(),
                email: "new@example.com".to_owned(),
                at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
                address: None,
            },
        ] {
            let stored = serde_json::to_value(&notice).unwrap();
            assert_eq!(stored["kind"], notice.kind());
            assert_eq!(serde_json::from_value::<Notice>(stored).unwrap(), notice);
        }
    }
}
