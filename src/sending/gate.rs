//! Whether an app may send at this moment.

use chrono::{DateTime, Utc};

use mailgate_types::subscription::{SendingPermission, Subscription, SubscriptionStatus};

/// Sending is blocked by the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// A payment is due: worth holding the mail for.
    #[error("Sending is suspended: the subscription is {0}")]
    Suspended(SubscriptionStatus),
    /// There is no subscription any more.
    #[error("Sending is blocked: the subscription has ended")]
    Ended,
}

/// Admits an app whose subscription allows sending at `now`.
///
/// # Errors
///
/// [`Blocked`], which also says whether waiting may help.
pub(super) fn admit(subscription: Subscription, now: DateTime<Utc>) -> Result<(), Blocked> {
    match subscription.permission(now) {
        SendingPermission::Allowed => Ok(()),
        SendingPermission::Suspended(status) => Err(Blocked::Suspended(status)),
        SendingPermission::Ended => Err(Blocked::Ended),
    }
}
