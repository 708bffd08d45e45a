//! A change of an account's address, and the links that decide on it. An address is a credential: links that sign in are
//! mailed to it.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::seal::{SealError, SealKeys};
use super::sealed_text;

/// How long a change waits for its confirmation.
pub const CONFIRMED_WITHIN: TimeDelta = TimeDelta::hours(24);

/// How long a confirmed change can be undone by who reads the former address.
pub const UNDONE_WITHIN: TimeDelta = TimeDelta::hours(72);

/// What links are sealed for.
const CONTEXT: &str = "email_change";

/// A mail about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailChangeStep {
    /// To the new address: it asks for the confirmation.
    Confirm,
    /// To the former one: a change was asked for.
    Requested,
    /// To the former one: it has changed, and can be taken back.
    Changed,
    /// To the former one, which was the account's for less than [`UNDONE_WITHIN`]: it has changed again.
    ChangedAgain,
    /// To one that was the account's since a change: the address of before was taken back.
    Restored,
    /// To the former one: the operator has set another.
    Set,
}

/// What a mailed link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailChangeLink {
    /// Makes the new address the account's.
    Confirm,
    /// Stops the change, or takes the former address back.
    Undo,
}

impl EmailChangeStep {
    /// What the link in this mail does; `None`: it has none.
    #[must_use]
    pub const fn link(self) -> Option<EmailChangeLink> {
        match self {
            Self::Confirm => Some(EmailChangeLink::Confirm),
            Self::Requested | Self::Changed => Some(EmailChangeLink::Undo),
            Self::ChangedAgain | Self::Restored | Self::Set => None,
        }
    }
}

impl EmailChangeLink {
    /// The token of a link to a change.
    ///
    /// # Errors
    ///
    /// As [`SealKeys::seal`].
    pub fn token(self, keys: &SealKeys, change: Uuid) -> Result<String, SealError> {
        sealed_text::seal(keys, CONTEXT, &(self, change))
    }

    /// What the token of a link does to which change; `None` if it isn't one.
    #[must_use]
    pub fn read(keys: &SealKeys, token: &str) -> Option<(Self, Uuid)> {
        sealed_text::open(keys, CONTEXT, token)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_what_its_mail_says() {
        let keys = SealKeys::parse(["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap();
        let change = Uuid::from_u128(7);
        for (step, link) in [
            (EmailChangeStep::Confirm, EmailChangeLink::Confirm),
            (EmailChangeStep::Requested, EmailChangeLink::Undo),
            (EmailChangeStep::Changed, EmailChangeLink::Undo),
        ] {
            let token = step.link().unwrap().token(&keys, change).unwrap();
            assert_eq!(EmailChangeLink::read(&keys, &token), Some((link, change)));
        }
        let other = sealed_text::seal(&keys, "other", &(EmailChangeLink::Undo, change)).unwrap();
        assert_eq!(EmailChangeLink::read(&keys, &other), None);
    }
}
