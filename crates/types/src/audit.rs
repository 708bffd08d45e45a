//! The vocabulary of the audit trail: who changed what, and from where.

use std::fmt::Display;
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ids::{ApiSecretId, AppId, PortalSessionId, SubscriberId};
use crate::words::words;

/// Longest text in an entry's details, in characters.
const TEXT_LENGTH: usize = 256;

words! {
    /// Who made a change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Actor {
        /// The subscriber, with one of its API secrets or in the portal.
        Subscriber = "subscriber",
        /// An end user, on the connect pages.
        User = "user",
        /// The mail provider, by refusing a grant.
        Provider = "provider",
        /// The operator, from the command line or with the operator token.
        Operator = "operator",
    }
}

/// Who made a change, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// Who.
    pub actor: Actor,
    /// The client's address; `None` if no client requested the change.
    pub address: Option<IpAddr>,
    /// The subscriber's credential; `None` for other actors.
    pub shown: Option<Shown>,
}

/// The credential that authenticated a subscriber. It may become invalid during the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// Its credential.
    pub credential: Credential,
}

/// A credential of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// The main API secret.
    ApiSecret {
        /// When it became the current one; `None`: at sign-up.
        since: Option<DateTime<Utc>>,
    },
    /// An additional API secret.
    AdditionalSecret(ApiSecretId),
    /// A session of the portal.
    PortalSession(PortalSessionId),
    /// A sign-in link to the portal, consumed in the change's own transaction.
    Link,
}

impl Author {
    /// A subscriber.
    #[must_use]
    pub const fn subscriber(
        address: IpAddr,
        subscriber: SubscriberId,
        credential: Credential,
    ) -> Self {
        Self {
            actor: Actor::Subscriber,
            address: Some(address),
            shown: Some(Shown {
                subscriber,
                credential,
            }),
        }
    }

    /// The additional API secret that authenticated the subscriber; `None` for the main one and in the portal.
    #[must_use]
    pub const fn api_secret(&self) -> Option<ApiSecretId> {
        match self.shown {
            Some(Shown {
                credential: Credential::AdditionalSecret(id),
                ..
            }) => Some(id),
            _ => None,
        }
    }

    /// An end user.
    #[must_use]
    pub const fn user(address: Option<IpAddr>) -> Self {
        Self {
            actor: Actor::User,
            address,
            shown: None,
        }
    }

    /// The mail provider.
    #[must_use]
    pub const fn provider() -> Self {
        Self {
            actor: Actor::Provider,
            address: None,
            shown: None,
        }
    }

    /// The operator: with an address through the REST API, without one from the command line.
    #[must_use]
    pub const fn operator(address: Option<IpAddr>) -> Self {
        Self {
            actor: Actor::Operator,
            address,
            shown: None,
        }
    }
}

words! {
    /// What was changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum AuditAction {
        /// A subscriber was created.
        SubscriberCreated = "subscriber.created",
        /// A subscriber's label or contact address was changed.
        SubscriberChanged = "subscriber.changed",
        /// A change of the contact address was requested, and awaits confirmation.
        EmailChangeRequested = "email_change.requested",
        /// A change of the contact address was stopped before its confirmation.
        EmailChangeStopped = "email_change.stopped",
        /// The operator has suspended a subscriber, or changed the reason.
        SubscriberSuspended = "subscriber.suspended",
        /// The operator has resumed a subscriber.
        SubscriberResumed = "subscriber.resumed",
        /// The operator set or reset a subscriber's own limits.
        SubscriberLimitsChanged = "subscriber.limits_changed",
        /// The operator has deleted a subscriber, which can be restored for a time.
        SubscriberDeletionScheduled = "subscriber.deletion_scheduled",
        /// The operator has restored a deleted subscriber.
        SubscriberRestored = "subscriber.restored",
        /// A subscriber was permanently deleted, with its apps and its audit trail.
        SubscriberDeleted = "subscriber.deleted",
        /// The API secret was renewed.
        ApiSecretRenewed = "api_secret.renewed",
        /// The API secret was shown in the portal.
        ApiSecretRevealed = "api_secret.revealed",
        /// An additional API secret was created.
        ApiSecretCreated = "api_secret.created",
        /// An additional API secret was deleted.
        ApiSecretDeleted = "api_secret.deleted",
        /// Somebody signed in to the portal.
        PortalSignedIn = "portal.signed_in",
        /// One or more portal sessions were ended.
        PortalSignedOut = "portal.signed_out",
        /// A sign-in link to the portal was minted.
        PortalLinkMinted = "portal.link_minted",
        /// The log was exported.
        LogsExported = "logs.exported",
        /// An app was created.
        AppCreated = "app.created",
        /// Fields of an app were changed.
        AppChanged = "app.changed",
        /// An app was deleted, with its mailboxes.
        AppDeleted = "app.deleted",
        /// An app's send key was renewed.
        SendKeyRenewed = "send_key.renewed",
        /// An app's send key was shown.
        SendKeyRevealed = "send_key.revealed",
        /// An additional send key was created.
        SendKeyCreated = "send_key.created",
        /// An additional send key was changed.
        SendKeyChanged = "send_key.changed",
        /// An additional send key was deleted.
        SendKeyDeleted = "send_key.deleted",
        /// The secret of an app's own `webhook_url` was renewed.
        WebhookSecretRenewed = "webhook_secret.renewed",
        /// An app's webhook secret was shown.
        WebhookSecretRevealed = "webhook_secret.revealed",
        /// An app's pushable key was renewed.
        PushableKeyRenewed = "pushable_key.renewed",
        /// A webhook configuration was created.
        WebhookCreated = "webhook.created",
        /// A webhook configuration was changed.
        WebhookChanged = "webhook.changed",
        /// A webhook configuration was deleted.
        WebhookDeleted = "webhook.deleted",
        /// The secret of a webhook configuration was replaced.
        WebhookSecretRotated = "webhook.secret_rotated",
        /// Events were queued again for a webhook configuration, or for an app's own `webhook_url`.
        WebhookReplayed = "webhook.replayed",
        /// One event was queued again for a webhook configuration, or for an app's own `webhook_url`.
        WebhookRedelivered = "webhook.redelivered",
        /// A test event was sent to a webhook configuration.
        WebhookTested = "webhook.tested",
        /// A connect session was created.
        ConnectSessionCreated = "connect_session.created",
        /// A mailbox was connected, for the first time or again.
        UserConnected = "user.connected",
        /// A mailbox was disconnected.
        UserDisconnected = "user.disconnected",
        /// A user was released: bare links may connect any address for them again.
        UserReleased = "user.released",
        /// Suppressed recipients may receive mail again.
        SuppressionsDeleted = "suppressions.deleted",
        /// A checkout page for entering a payment method was requested.
        CheckoutStarted = "checkout.started",
        /// The payment provider's customer portal was requested.
        PortalOpened = "portal.opened",
        /// The subscription was scheduled to end.
        SubscriptionCanceled = "subscription.canceled",
        /// The open invoices were paid, or a new subscription was created.
        SubscriptionReactivated = "subscription.reactivated",
        /// All stored secrets were resealed with another key.
        SecretsResealed = "secrets.resealed",
        /// A waiting message was made due.
        MessageRetried = "message.retried",
        /// A scheduled or waiting message was cancelled.
        MessageCanceled = "message.canceled",
    }

    /// The text is not the name of an action.
    else UnknownAction("is no action of the audit trail");
}

/// The subject of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSubject {
    /// An app that still exists.
    App(AppId),
    /// A subscriber.
    Subscriber(SubscriberId),
    /// The gateway as a whole; not shown to any subscriber.
    Gateway,
}

/// A change to be recorded.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// What was changed.
    pub action: AuditAction,
    /// Its subject.
    pub subject: AuditSubject,
    /// The id of the mailbox, the webhook configuration, the delivery or the message, or the key of the user.
    pub target: Option<String>,
    /// An object with further details, every text in it bounded.
    pub details: Value,
}

impl AuditEntry {
    fn new(action: AuditAction, subject: AuditSubject) -> Self {
        Self {
            action,
            subject,
            target: None,
            details: json!({}),
        }
    }

    /// A change to an app, or to something that belongs to it.
    #[must_use]
    pub fn of_app(action: AuditAction, app: AppId) -> Self {
        Self::new(action, AuditSubject::App(app))
    }

    /// A change to a subscriber.
    #[must_use]
    pub fn of_subscriber(action: AuditAction, subscriber: SubscriberId) -> Self {
        Self::new(action, AuditSubject::Subscriber(subscriber))
    }

    /// A change to the gateway as a whole.
    #[must_use]
    pub fn of_gateway(action: AuditAction) -> Self {
        Self::new(action, AuditSubject::Gateway)
    }

    /// Sets the id of the mailbox, the webhook configuration or the message.
    #[must_use]
    pub fn on(mut self, target: impl Display) -> Self {
        self.target = Some(target.to_string());
        self
    }

    /// Adds details. They must hold no secrets; texts longer than 256 characters are truncated.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = bounded(details);
        self
    }
}

/// The value with every text bounded, and without NUL, which Postgres can't store.
fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let mut letters = text.chars().filter(|letter| *letter != '\0');
            let mut kept: String = letters.by_ref().take(TEXT_LENGTH).collect();
            if letters.next().is_some() {
                kept.pop();
                kept.push('…');
            }
            Value::String(kept)
        }
        Value::Array(values) => values.into_iter().map(bounded).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, bounded(value)))
            .collect(),
        other => other,
    }
}

/// The fields whose value in `change` differs from `before`, each with its old value in `from` and its new one in `to`;
/// `None` if there are none. A field that is null in `change` is unchanged.
#[must_use]
pub fn changed(before: &impl Serialize, change: &impl Serialize) -> Option<Value> {
    let fields = |value: Result<Value, _>| match value {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let before = fields(serde_json::to_value(before));
    let changed: Map<String, Value> = fields(serde_json::to_value(change))
        .into_iter()
        .filter(|(name, to)| !to.is_null() && before.get(name) != Some(to))
        .map(|(name, to)| {
            let from = before.get(&name).cloned().unwrap_or_default();
            (name, json!({ "from": from, "to": to }))
        })
        .collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (position, action) in AuditAction::ALL.into_iter().enumerate() {
            assert_eq!(action.to_string().parse(), Ok(action));
            assert_eq!(action as usize, position, "{action} is listed once");
        }
        for text in ["", "app", "app.", "App.created", "app.created "] {
            assert_eq!(text.parse::<AuditAction>(), Err(UnknownAction), "{text:?}");
        }
    }

    #[test]
    fn what_has_changed() {
        let before = json!({ "name": "A", "multiuser": true, "events": ["x"] });
        for (change, expected) in [
            (json!({}), None),
            (json!({ "name": null, "multiuser": true }), None),
            (json!({ "name": "A", "events": ["x"] }), None),
            (
                json!({ "name": "B", "multiuser": true, "events": ["x", "y"] }),
                Some(json!({
                    "name": { "from": "A", "to": "B" },
                    "events": { "from": ["x"], "to": ["x", "y"] },
                })),
            ),
        ] {
            assert_eq!(changed(&before, &change), expected, "{change}");
        }
    }

    proptest! {
        #[test]
        fn texts_are_bounded(text in any::<String>(), length in 0_usize..600) {
            let text = text.repeat(length / text.chars().count().max(1) + 1);
            let entry = AuditEntry::of_gateway(AuditAction::AppChanged)
                .with(json!({ "a": [{ "b": text }] }));
            let kept = entry.details["a"][0]["b"].as_str().unwrap_or_default();
            prop_assert!(kept.chars().count() <= TEXT_LENGTH);
            prop_assert!(!kept.contains('\0'));
            let clean = text.replace('\0', "");
            if clean.chars().count() <= TEXT_LENGTH {
                prop_assert_eq!(kept, clean);
            } else {
                prop_assert!(kept.ends_with('…'));
            }
        }
    }
}
