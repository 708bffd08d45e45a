//! The scopes of additional API secrets.

use crate::words::words;

words! {
    /// A permission of an additional API secret. Scopes are independent: writing doesn't include reading.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Scope {
        /// List and show apps, with their users and the names of their send keys.
        AppsRead = "apps:read",
        /// Create, change and delete apps, and renew their pushable keys.
        AppsWrite = "apps:write",
        /// Read the audit trail.
        AuditRead = "audit:read",
        /// Show the subscription.
        BillingRead = "billing:read",
        /// Enter a payment method, cancel and reactivate.
        BillingWrite = "billing:write",
        /// Read messages, statistics, refusals, suppressions and the queue.
        LogsRead = "logs:read",
        /// Retry and cancel messages, and delete suppressions.
        LogsWrite = "logs:write",
        /// Create connect sessions, disconnect mailboxes, and release users.
        MailboxesWrite = "mailboxes:write",
        /// Show the account, without the API secret.
        MeRead = "me:read",
        /// List webhook configurations and their deliveries.
        WebhooksRead = "webhooks:read",
        /// Create, change, delete, test and replay webhooks, and set an app's `webhook_url`.
        WebhooksWrite = "webhooks:write",
    }

    /// The text is not the name of a scope.
    else UnknownScope("is not a scope");
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
