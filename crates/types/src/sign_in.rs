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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_they_are_written() {
        for way in SignedInBy::ALL {
            assert_eq!(way.as_str().parse(), Ok(way));
        }
        assert_eq!("".parse::<SignedInBy>(), Err(UnknownWay));
    }
}
