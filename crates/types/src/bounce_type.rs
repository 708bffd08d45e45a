//! Whether a bounce is final.

use crate::words::words;

words! {
    /// Whether the recipient's server has given the message up.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum BounceType {
        /// It won't arrive.
        Permanent = "permanent",
        /// It is delayed, and may still arrive.
        Temporary = "temporary",
    }
}
