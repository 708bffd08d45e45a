//! The ways to sign in to the portal.

use crate::words::words;

words! {
    /// The credential of a sign-in.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SignedInBy {
        /// The API secret.
        ApiSecret = "api_secret",
        /// A link mailed to the subscriber.
        Link = "link",
        /// A link minted with the API secret.
        Minted = "minted",
    }

    /// The text names no way to sign in.
    else UnknownWay("is no way to sign in");
}
