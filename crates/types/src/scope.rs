//! The scopes of additional API secrets.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use serde::Serialize;

/// A permission of an additional API secret. Scopes are independent: writing doesn't include reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// List and show apps, with their users and the names of their send keys.
    AppsRead,
    /// Create, change and delete apps, and renew their pushable keys.
    AppsWrite,
    /// Read the audit trail.
    AuditRead,
    /// Show the subscription.
    BillingRead,
    /// Enter a payment method, cancel and reactivate.
    BillingWrite,
    /// Read messages, statistics, refusals, suppressions and the queue.
    LogsRead,
    /// Retry and cancel messages, and delete suppressions.
    LogsWrite,
    /// Create connect sessions, disconnect mailboxes, and release users.
    MailboxesWrite,
    /// Show the account, without the API secret.
    MeRead,
    /// List webhook configurations and their deliveries.
    WebhooksRead,
    /// Create, change, delete, test and replay webhooks, and set an app's `webhook_url`.
    WebhooksWrite,
}

/// The text is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a scope")]
pub struct UnknownScope;

impl Scope {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 11] = [
        Self::AppsRead,
        Self::AppsWrite,
        Self::AuditRead,
        Self::BillingRead,
        Self::BillingWrite,
        Self::LogsRead,
        Self::LogsWrite,
        Self::MailboxesWrite,
        Self::MeRead,
        Self::WebhooksRead,
        Self::WebhooksWrite,
    ];

    /// The name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AppsRead => "apps:read",
            Self::AppsWrite => "apps:write",
            Self::AuditRead => "audit:read",
            Self::BillingRead => "billing:read",
            Self::BillingWrite => "billing:write",
            Self::LogsRead => "logs:read",
            Self::LogsWrite => "logs:write",
            Self::MailboxesWrite => "mailboxes:write",
            Self::MeRead => "me:read",
            Self::WebhooksRead => "webhooks:read",
            Self::WebhooksWrite => "webhooks:write",
        }
    }
}

impl Display for Scope {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let mut all = Self::ALL.into_iter();
        all.find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (position, scope) in Scope::ALL.into_iter().enumerate() {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert_eq!(scope as usize, position, "{scope} is listed once");
        }
        for text in ["", "apps", "apps:", "Apps:read", "apps:read ", "*"] {
            assert_eq!(text.parse::<Scope>(), Err(UnknownScope), "{text:?}");
        }
    }
}
