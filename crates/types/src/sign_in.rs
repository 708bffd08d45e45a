//! The ways to sign in to the portal.

use std::str::FromStr;

/// The credential of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedInBy {
    /// The API secret.
    ApiSecret,
    /// A link mailed to the subscriber.
    Link,
    /// A link minted with the API secret.
    Minted,
}

/// The text names no way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no way to sign in")]
pub struct UnknownWay;

impl SignedInBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ApiSecret, Self::Link, Self::Minted];

    /// The name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiSecret => "api_secret",
            Self::Link => "link",
            Self::Minted => "minted",
        }
    }
}

impl FromStr for SignedInBy {
    type Err = UnknownWay;

    fn from_str(text: &str) -> Result<Self, UnknownWay> {
        let way = Self::ALL.into_iter().find(|way| way.as_str() == text);
        way.ok_or(UnknownWay)
    }
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
