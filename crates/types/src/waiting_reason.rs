//! Why a message waits in the queue.

use crate::words::words;

words! {
    /// The reason why a message waits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum WaitingReason {
        /// It is scheduled for a later time.
        Scheduled = "scheduled",
        /// Its app's subscription is suspended.
        Subscription = "subscription",
        /// Its mailbox has reached its sending limit.
        MailboxLimit = "mailbox_limit",
        /// The last attempt failed, or could not be made.
        TemporaryFailure = "temporary_failure",
    }

    /// The text isn't the name of a reason.
    else UnknownWaitingReason("must be scheduled, subscription, mailbox_limit or temporary_failure");
}
