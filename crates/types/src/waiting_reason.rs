//! What a message waits for in the queue.

use crate::words::words;

words! {
    /// Why a message waits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum WaitingReason {
        /// For the time that its sender gave.
        Scheduled = "scheduled",
        /// For its app's subscription, which is suspended.
        Subscription = "subscription",
        /// For its mailbox's turn.
        MailboxLimit = "mailbox_limit",
        /// For another attempt: the last one failed, or could not take place.
        TemporaryFailure = "temporary_failure",
    }

    /// The text is not the name of a reason.
    else UnknownWaitingReason("must be scheduled, subscription, mailbox_limit or temporary_failure");
}
