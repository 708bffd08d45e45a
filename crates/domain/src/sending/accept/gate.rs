//! Whether an app may send at this moment.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use mailgate_types::subscription::{SendingPermission, Subscription, SubscriptionStatus};

/// Sending is blocked by the operator, or by the subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// The operator has suspended the account, for this reason: its mail waits until it is resumed.
    #[error(
        "Sending is suspended: the operator of this gateway has suspended the account ({0}). Contact the operator to have it resumed"
    )]
    ByOperator(Arc<str>),
    /// A payment is due: worth holding the mail for.
    #[error("Sending is suspended: the subscription is {0}")]
    Suspended(SubscriptionStatus),
    /// The subscription has ended.
    #[error("Sending is blocked: the subscription has ended")]
    Ended,
}

impl Blocked {
    /// Whether waiting mail is kept until sending is permitted again.
    pub(in crate::sending) fn may_pass(&self) -> bool {
        !matches!(self, Self::Ended)
    }
}

/// Admits an app that the operator hasn't suspended, and whose subscription allows sending at `now`.
///
/// # Errors
/// [`Blocked`], which also tells whether waiting may help.
pub(in crate::sending) fn admit(
    subscription: &Subscription,
    now: DateTime<Utc>,
) -> Result<(), Blocked> {
    if let Some(reason) = &subscription.suspension {
        return Err(Blocked::ByOperator(Arc::clone(reason)));
    }
    match subscription.permission(now) {
        SendingPermission::Allowed => Ok(()),
        SendingPermission::Suspended(status) => Err(Blocked::Suspended(status)),
        SendingPermission::Ended => Err(Blocked::Ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_counts_whatever_was_paid_and_passes() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let reason: Arc<str> = Arc::from("Spam");
        for status in SubscriptionStatus::ALL.map(Some).into_iter().chain([None]) {
            let mut subscription = Subscription {
                status,
                grace_ends_at: Some(DateTime::<Utc>::MAX_UTC),
                suspension: Some(Arc::clone(&reason)),
            };
            let blocked = admit(&subscription, now);
            assert_eq!(
                blocked,
                Err(Blocked::ByOperator(Arc::clone(&reason))),
                "{status:?}"
            );
            assert!(blocked.is_err_and(|blocked| blocked.may_pass()));
            subscription.suspension = None;
            let is_over = matches!(status, Some(SubscriptionStatus::Canceled) | None);
            let without = admit(&subscription, now);
            assert_eq!(without == Err(Blocked::Ended), is_over, "{status:?}");
        }
    }
}
