//! The status of a subscription, and the sending permission that follows.

use std::sync::Arc;

use crate::words::words;
use chrono::{DateTime, Utc};

words! {
    /// A subscriber's status with the payment provider.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SubscriptionStatus {
        /// The trial is running.
        Trialing = "trialing",
        /// Paid.
        Active = "active",
        /// A payment failed.
        PastDue = "past_due",
        /// An invoice remains unpaid.
        Unpaid = "unpaid",
        /// Ended.
        Canceled = "canceled",
    }

    /// The text isn't a status of the API contract.
    else UnknownStatus("not a subscription status");
}

/// Whether mail may be sent, and whether a refusal is temporary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendingPermission {
    /// Sending is permitted.
    Allowed,
    /// Refused until a payment is made; mail can be queued until then.
    Suspended(SubscriptionStatus),
    /// Refused: the subscription has ended, or never existed.
    Ended,
}

/// The parts of a subscription that decide on sending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// The status; `None` without a subscription.
    pub status: Option<SubscriptionStatus>,
    /// The end of the grace period after a failed payment; `None`: sending stops immediately.
    pub grace_ends_at: Option<DateTime<Utc>>,
    /// Why the operator has suspended the account, if so; nothing is sent then, regardless of payment.
    pub suspension: Option<Arc<str>>,
}

impl Subscription {
    /// The permission at `now`.
    #[must_use]
    pub fn permission(&self, now: DateTime<Utc>) -> SendingPermission {
        match sending_permission(self.status) {
            SendingPermission::Suspended(SubscriptionStatus::PastDue)
                if self.grace_ends_at.is_some_and(|end| now < end) =>
            {
                SendingPermission::Allowed
            }
            permission => permission,
        }
    }
}

/// The permission by status alone (`None`: no subscription).
#[must_use]
pub const fn sending_permission(status: Option<SubscriptionStatus>) -> SendingPermission {
    match status {
        Some(SubscriptionStatus::Trialing | SubscriptionStatus::Active) => {
            SendingPermission::Allowed
        }
        Some(status @ (SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid)) => {
            SendingPermission::Suspended(status)
        }
        Some(SubscriptionStatus::Canceled) | None => SendingPermission::Ended,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn only_trialing_and_active_may_send() {
        let permission = |word: &str| sending_permission(word.parse().ok());
        assert_eq!(permission("trialing"), SendingPermission::Allowed);
        assert_eq!(permission("active"), SendingPermission::Allowed);
        assert_eq!(
            permission("past_due"),
            SendingPermission::Suspended(SubscriptionStatus::PastDue)
        );
        assert_eq!(
            permission("unpaid"),
            SendingPermission::Suspended(SubscriptionStatus::Unpaid)
        );
        assert_eq!(permission("canceled"), SendingPermission::Ended);
        assert_eq!(permission("no such word"), SendingPermission::Ended);
    }

    #[test]
    fn grace_is_for_a_failed_payment_alone_and_ends() {
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let second = TimeDelta::seconds(1);
        for status in SubscriptionStatus::ALL.map(Some).into_iter().chain([None]) {
            for (grace_ends_at, is_within) in [
                (None, false),
                (Some(now - second), false),
                (Some(now), false),
                (Some(now + second), true),
            ] {
                let subscription = Subscription {
                    status,
                    grace_ends_at,
                    suspension: None,
                };
                let expected = if is_within && status == Some(SubscriptionStatus::PastDue) {
                    SendingPermission::Allowed
                } else {
                    sending_permission(status)
                };
                assert_eq!(subscription.permission(now), expected, "{subscription:?}");
            }
        }
    }
}
