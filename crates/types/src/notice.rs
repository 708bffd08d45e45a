//! Notices mailed to a subscriber.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::email_change::EmailChangeStep;
pub use super::money::AmountDue;

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
        /// When the provider retries automatically, if it does.
        next_attempt: Option<DateTime<Utc>>,
    },
    /// A payment needs the customer's confirmation.
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
        /// Whether there is a payment method, so that the subscription continues.
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
        /// The kind of links mailed there.
        #[serde(default)]
        reader: RenewalReader,
    },
    /// The operator has suspended the account: nothing is sent until it is resumed.
    AccountSuspended {
        /// When the account was suspended, or the reason last changed.
        at: DateTime<Utc>,
        /// Why.
        reason: String,
    },
    /// The operator has resumed the account.
    AccountResumed {
        /// When.
        at: DateTime<Utc>,
    },
    /// The account's address is changing, or has changed.
    EmailChange {
        /// The step of the change.
        step: EmailChangeStep,
        /// The change's id.
        id: Uuid,
        /// The old address.
        former_email: String,
        /// The new address.
        email: String,
        /// When this step happened.
        at: DateTime<Utc>,
        /// The client's address.
        address: Option<IpAddr>,
    },
}

/// The recipient of a notice about a renewed API secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenewalReader {
    /// The account's address: links mailed there can renew the secret too.
    #[default]
    Established,
    /// A recently changed address: links mailed there can't renew the secret.
    New,
    /// The address before the change, which can be restored.
    Former,
}

impl Notice {
    /// Its name in the database.
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

    /// The recipient, if it isn't the account's address at the time of sending.
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

    /// Whether it is about payments; there is no other notice of these.
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
