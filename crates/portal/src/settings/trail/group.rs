//! Groups of audited actions, which filter the audit log.

use mailgate_types::audit::AuditAction;

/// What a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Account,
    Apps,
    Billing,
    Keys,
    Mailboxes,
    Messages,
    SignIns,
    Webhooks,
}

impl Group {
    /// All of them, in the order of their names.
    pub(crate) const ALL: [Self; 8] = [
        Self::Account,
        Self::Apps,
        Self::Billing,
        Self::Keys,
        Self::Mailboxes,
        Self::Messages,
        Self::SignIns,
        Self::Webhooks,
    ];

    /// The word in addresses, and the name.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Account => ("account", "Account"),
            Self::Apps => ("apps", "Apps"),
            Self::Billing => ("billing", "Billing"),
            Self::Keys => ("keys", "Keys and secrets"),
            Self::Mailboxes => ("mailboxes", "Mailboxes"),
            Self::Messages => ("messages", "Messages"),
            Self::SignIns => ("sign-ins", "Sign-ins"),
            Self::Webhooks => ("webhooks", "Webhooks"),
        }
    }

    /// The group of a word; `None` for another one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|group| group.words().0 == word)
    }

    /// The actions in it.
    pub(crate) fn actions(self) -> Vec<AuditAction> {
        let all = AuditAction::ALL.into_iter();
        all.filter(|action| group(*action) == self).collect()
    }
}

const fn group(action: AuditAction) -> Group {
    match action {
        AuditAction::SubscriberCreated
        | AuditAction::SubscriberChanged
        | AuditAction::EmailChangeRequested
        | AuditAction::EmailChangeStopped
        | AuditAction::SubscriberSuspended
        | AuditAction::SubscriberResumed
        | AuditAction::SubscriberLimitsChanged
        | AuditAction::SubscriberDeletionScheduled
        | AuditAction::SubscriberRestored
        | AuditAction::SubscriberDeleted
        | AuditAction::SecretsResealed => Group::Account,
        AuditAction::ApiSecretRenewed
        | AuditAction::ApiSecretRevealed
        | AuditAction::ApiSecretCreated
        | AuditAction::ApiSecretDeleted
        | AuditAction::SendKeyRenewed
        | AuditAction::SendKeyRevealed
        | AuditAction::SendKeyCreated
        | AuditAction::SendKeyChanged
        | AuditAction::SendKeyDeleted
        | AuditAction::WebhookSecretRenewed
        | AuditAction::WebhookSecretRevealed
        | AuditAction::WebhookSecretRotated
        | AuditAction::PushableKeyRenewed => Group::Keys,
        AuditAction::PortalSignedIn
        | AuditAction::PortalSignedOut
        | AuditAction::PortalLinkMinted => Group::SignIns,
        AuditAction::LogsExported
        | AuditAction::MessageRetried
        | AuditAction::MessageCanceled
        | AuditAction::SuppressionsDeleted => Group::Messages,
        AuditAction::AppCreated | AuditAction::AppChanged | AuditAction::AppDeleted => Group::Apps,
        AuditAction::WebhookCreated
        | AuditAction::WebhookChanged
        | AuditAction::WebhookDeleted
        | AuditAction::WebhookReplayed
        | AuditAction::WebhookRedelivered
        | AuditAction::WebhookTested => Group::Webhooks,
        AuditAction::ConnectSessionCreated
        | AuditAction::UserConnected
        | AuditAction::UserDisconnected
        | AuditAction::UserReleased => Group::Mailboxes,
        AuditAction::CheckoutStarted
        | AuditAction::PortalOpened
        | AuditAction::SubscriptionCanceled
        | AuditAction::SubscriptionReactivated => Group::Billing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_in_one_group() {
        let together: usize = Group::ALL.map(|group| group.actions().len()).iter().sum();
        assert_eq!(together, AuditAction::ALL.len());
        for group in Group::ALL {
            assert!(!group.actions().is_empty());
            assert_eq!(Group::of(group.words().0), Some(group));
        }
        assert_eq!(Group::of(""), None);
    }
}
