//! Whether a bounce is final.

use crate::words::words;

words! {
    /// Whether delivery has failed permanently.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum BounceType {
        /// The message won't arrive.
        Permanent = "permanent",
        /// The message is delayed, and may still arrive.
        Temporary = "temporary",
    }
}
