//! The ways to sign in to the portal.

use crate::words::words;

words! {
    /// What somebody showed who signed in.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SignedInBy {
        /// The API secret.
        ApiSecret = "api_secret",
        /// A link that was mailed to the subscriber.
        Link = "link",
        /// A link that was minted with the API secret.
        Minted = "minted",
    }

    /// The text names no way to sign in.
    else UnknownWay("is no way to sign in");
}
