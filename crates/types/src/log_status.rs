//! The status of a log row's message.

use crate::words::words;

/// The error of a message that was cancelled.
pub const CANCELLED: &str = "Cancelled";

words! {
    /// The status of a logged message; it moves from `FailedTemp` to one of the others, never back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LogStatus {
        /// The provider accepted the message.
        Sent = "sent",
        /// A temporary failure; the gateway will retry.
        FailedTemp = "failed_temp",
        /// A permanent failure.
        FailedPerm = "failed_perm",
    }

    /// The text is not a log status.
    else UnknownLogStatus("must be sent, failed_temp or failed_perm");
}
