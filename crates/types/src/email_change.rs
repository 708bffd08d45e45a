//! A change of an account's address, and the links to confirm or undo it. An address is a credential: sign-in links are
//! mailed to it.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::seal::{SealError, SealKeys};
use super::sealed_text;

/// How long a change can be confirmed.
pub const CONFIRMED_WITHIN: TimeDelta = TimeDelta::hours(24);

/// How long a confirmed change can be undone from the former address.
pub const UNDONE_WITHIN: TimeDelta = TimeDelta::hours(72);

/// The context that links are sealed for.
const CONTEXT: &str = "email_change";

/// A mail about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailChangeStep {
    /// To the new address: asks for confirmation.
    Confirm,
    /// To the former address: a change was requested.
    Requested,
    /// To the former address: the change is confirmed, and can be undone.
    Changed,
    /// To the former address, in use for less than [`UNDONE_WITHIN`]: it has changed again.
    ChangedAgain,
    /// To the changed address: the former address was restored.
    Restored,
    /// To the former address: the operator has set another.
    Set,
}

/// The action of a mailed link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmailChangeLink {
    /// Confirms the new address.
    Confirm,
    /// Stops the change, or restores the former address.
    Undo,
}

impl EmailChangeStep {
    /// The action of this mail's link; `None`: it has no link.
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
    /// Creates the token of a link to a change.
    ///
    /// # Errors
    ///
    /// As [`SealKeys::seal`].
    pub fn token(self, keys: &SealKeys, change: Uuid) -> Result<String, SealError> {
        sealed_text::seal(keys, CONTEXT, &(self, change))
    }

    /// The action and the change that a link's token stands for; `None` if it isn't valid.
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
