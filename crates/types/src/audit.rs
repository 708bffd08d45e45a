//! The vocabulary of the audit trail: who changed what, and from where.

use std::fmt::{Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ids::{ApiSecretId, AppId, PortalSessionId, SubscriberId};

/// Longest text in an entry's details, in characters.
const TEXT_LENGTH: usize = 256;

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The subscriber, with one of its API secrets or in the portal.
    Subscriber,
    /// An end user, on the connect pages.
    User,
    /// The mail provider, by refusing a grant.
    Provider,
    /// The operator, from the command line or with the operator token.
    Operator,
}

impl Actor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Subscriber, Self::User, Self::Provider, Self::Operator];

    /// As the interface and the database spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subscriber => "subscriber",
            Self::User => "user",
            Self::Provider => "provider",
            Self::Operator => "operator",
        }
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

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuditAction {
    /// A subscriber was created.
    SubscriberCreated,
    /// A subscriber's label or contact address was changed.
    SubscriberChanged,
    /// A change of the contact address was requested, and awaits confirmation.
    EmailChangeRequested,
    /// A change of the contact address was stopped before its confirmation.
    EmailChangeStopped,
    /// The operator has suspended a subscriber, or changed the reason.
    SubscriberSuspended,
    /// The operator has resumed a subscriber.
    SubscriberResumed,
    /// The operator set or reset a subscriber's own limits.
    SubscriberLimitsChanged,
    /// The operator has deleted a subscriber, which can be restored for a time.
    SubscriberDeletionScheduled,
    /// The operator has restored a deleted subscriber.
    SubscriberRestored,
    /// A subscriber was permanently deleted, with its apps and its audit trail.
    SubscriberDeleted,
    /// The API secret was renewed.
    ApiSecretRenewed,
    /// The API secret was shown in the portal.
    ApiSecretRevealed,
    /// An additional API secret was created.
    ApiSecretCreated,
    /// An additional API secret was deleted.
    ApiSecretDeleted,
    /// Somebody signed in to the portal.
    PortalSignedIn,
    /// One or more portal sessions were ended.
    PortalSignedOut,
    /// A sign-in link to the portal was minted.
    PortalLinkMinted,
    /// The log was exported.
    LogsExported,
    /// An app was created.
    AppCreated,
    /// Fields of an app were changed.
    AppChanged,
    /// An app was deleted, with its mailboxes.
    AppDeleted,
    /// An app's send key was renewed.
    SendKeyRenewed,
    /// An app's send key was shown.
    SendKeyRevealed,
    /// An additional send key was created.
    SendKeyCreated,
    /// An additional send key was changed.
    SendKeyChanged,
    /// An additional send key was deleted.
    SendKeyDeleted,
    /// The secret of an app's own `webhook_url` was renewed.
    WebhookSecretRenewed,
    /// An app's webhook secret was shown.
    WebhookSecretRevealed,
    /// An app's pushable key was renewed.
    PushableKeyRenewed,
    /// A webhook configuration was created.
    WebhookCreated,
    /// A webhook configuration was changed.
    WebhookChanged,
    /// A webhook configuration was deleted.
    WebhookDeleted,
    /// The secret of a webhook configuration was replaced.
    WebhookSecretRotated,
    /// Events were queued again for a webhook configuration, or for an app's own `webhook_url`.
    WebhookReplayed,
    /// One event was queued again for a webhook configuration, or for an app's own `webhook_url`.
    WebhookRedelivered,
    /// A test event was sent to a webhook configuration.
    WebhookTested,
    /// A connect session was created.
    ConnectSessionCreated,
    /// A mailbox was connected, for the first time or again.
    UserConnected,
    /// A mailbox was disconnected.
    UserDisconnected,
    /// A user was released: bare links may connect any address for them again.
    UserReleased,
    /// Suppressed recipients may receive mail again.
    SuppressionsDeleted,
    /// A checkout page for entering a payment method was requested.
    CheckoutStarted,
    /// The payment provider's customer portal was requested.
    PortalOpened,
    /// The subscription was scheduled to end.
    SubscriptionCanceled,
    /// The open invoices were paid, or a new subscription was created.
    SubscriptionReactivated,
    /// All stored secrets were resealed with another key.
    SecretsResealed,
    /// A waiting message was made due.
    MessageRetried,
    /// A scheduled or waiting message was cancelled.
    MessageCanceled,
}

/// The text is not the name of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no action of the audit trail")]
pub struct UnknownAction;

impl AuditAction {
    /// All of them.
    pub const ALL: [Self; 48] = [
        Self::SubscriberCreated,
        Self::SubscriberChanged,
        Self::EmailChangeRequested,
        Self::EmailChangeStopped,
        Self::SubscriberSuspended,
        Self::SubscriberResumed,
        Self::SubscriberLimitsChanged,
        Self::SubscriberDeletionScheduled,
        Self::SubscriberRestored,
        Self::SubscriberDeleted,
        Self::ApiSecretRenewed,
        Self::ApiSecretRevealed,
        Self::ApiSecretCreated,
        Self::ApiSecretDeleted,
        Self::PortalSignedIn,
        Self::PortalSignedOut,
        Self::PortalLinkMinted,
        Self::LogsExported,
        Self::AppCreated,
        Self::AppChanged,
        Self::AppDeleted,
        Self::SendKeyRenewed,
        Self::SendKeyRevealed,
        Self::SendKeyCreated,
        Self::SendKeyChanged,
        Self::SendKeyDeleted,
        Self::WebhookSecretRenewed,
        Self::WebhookSecretRevealed,
        Self::PushableKeyRenewed,
        Self::WebhookCreated,
        Self::WebhookChanged,
        Self::WebhookDeleted,
        Self::WebhookSecretRotated,
        Self::WebhookReplayed,
        Self::WebhookRedelivered,
        Self::WebhookTested,
        Self::ConnectSessionCreated,
        Self::UserConnected,
        Self::UserDisconnected,
        Self::UserReleased,
        Self::SuppressionsDeleted,
        Self::CheckoutStarted,
        Self::PortalOpened,
        Self::SubscriptionCanceled,
        Self::SubscriptionReactivated,
        Self::SecretsResealed,
        Self::MessageRetried,
        Self::MessageCanceled,
    ];

    /// The name in the API and the database; if the action is also an event, the event's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubscriberCreated => "subscriber.created",
            Self::SubscriberChanged => "subscriber.changed",
            Self::EmailChangeRequested => "email_change.requested",
            Self::EmailChangeStopped => "email_change.stopped",
            Self::SubscriberSuspended => "subscriber.suspended",
            Self::SubscriberResumed => "subscriber.resumed",
            Self::SubscriberLimitsChanged => "subscriber.limits_changed",
            Self::SubscriberDeletionScheduled => "subscriber.deletion_scheduled",
            Self::SubscriberRestored => "subscriber.restored",
            Self::SubscriberDeleted => "subscriber.deleted",
            Self::ApiSecretRenewed => "api_secret.renewed",
            Self::ApiSecretRevealed => "api_secret.revealed",
            Self::ApiSecretCreated => "api_secret.created",
            Self::ApiSecretDeleted => "api_secret.deleted",
            Self::PortalSignedIn => "portal.signed_in",
            Self::PortalSignedOut => "portal.signed_out",
            Self::PortalLinkMinted => "portal.link_minted",
            Self::LogsExported => "logs.exported",
            Self::AppCreated => "app.created",
            Self::AppChanged => "app.changed",
            Self::AppDeleted => "app.deleted",
            Self::SendKeyRenewed => "send_key.renewed",
            Self::SendKeyRevealed => "send_key.revealed",
            Self::SendKeyCreated => "send_key.created",
            Self::SendKeyChanged => "send_key.changed",
            Self::SendKeyDeleted => "send_key.deleted",
            Self::WebhookSecretRenewed => "webhook_secret.renewed",
            Self::WebhookSecretRevealed => "webhook_secret.revealed",
            Self::PushableKeyRenewed => "pushable_key.renewed",
            Self::WebhookCreated => "webhook.created",
            Self::WebhookChanged => "webhook.changed",
            Self::WebhookDeleted => "webhook.deleted",
            Self::WebhookSecretRotated => "webhook.secret_rotated",
            Self::WebhookReplayed => "webhook.replayed",
            Self::WebhookRedelivered => "webhook.redelivered",
            Self::WebhookTested => "webhook.tested",
            Self::ConnectSessionCreated => "connect_session.created",
            Self::UserConnected => "user.connected",
            Self::UserDisconnected => "user.disconnected",
            Self::UserReleased => "user.released",
            Self::SuppressionsDeleted => "suppressions.deleted",
            Self::CheckoutStarted => "checkout.started",
            Self::PortalOpened => "portal.opened",
            Self::SubscriptionCanceled => "subscription.canceled",
            Self::SubscriptionReactivated => "subscription.reactivated",
            Self::SecretsResealed => "secrets.resealed",
            Self::MessageRetried => "message.retried",
            Self::MessageCanceled => "message.canceled",
        }
    }
}

impl Display for AuditAction {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for AuditAction {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::ALL
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or(UnknownAction)
    }
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
