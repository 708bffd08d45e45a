//! A change as a sentence, with its object as a link.

use serde_json::Value;

use super::known::Known;
use crate::page::words::number;
use mailgate_types::audit::AuditAction;
use mailgate_types::ids::LogId;

/// "Mailbox ada@example.com connected": the words before the object, the object, and the words after it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) before: String,
    /// Empty: there is none, or its name is unknown.
    pub(crate) object: String,
    /// The object's page; empty: it no longer exists, or has none.
    pub(crate) path: String,
    pub(crate) after: String,
}

impl Told {
    fn plain(words: impl Into<String>) -> Self {
        Self {
            before: words.into(),
            ..Self::default()
        }
    }

    fn on(before: &str, (object, path): (String, String), after: impl Into<String>) -> Self {
        Self {
            before: before.to_owned(),
            object,
            path,
            after: after.into(),
        }
    }

    /// The sentence without links.
    pub(crate) fn text(&self) -> String {
        let parts = [&self.before, &self.object, &self.after];
        let parts: Vec<&str> = (parts.into_iter())
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(" ")
    }
}

impl Known<'_> {
    /// The entry's sentence. An action that this release doesn't know is shown by its name.
    pub(crate) fn told(&self) -> Told {
        let Ok(action) = self.entry.action.parse::<AuditAction>() else {
            return Told::plain(self.entry.action.as_str());
        };
        (self.of_account(action))
            .or_else(|| self.of_keys(action))
            .or_else(|| self.of_apps(action))
            .unwrap_or_else(|| self.of_the_rest(action))
    }

    fn of_account(&self, action: AuditAction) -> Option<Told> {
        let told = match action {
            AuditAction::SubscriberCreated => Told::plain("Account created"),
            AuditAction::SubscriberChanged => self.account_changed(),
            AuditAction::EmailChangeRequested => Told::plain(format!(
                "Change of address to {} requested",
                self.to("email")
            )),
            AuditAction::EmailChangeStopped => {
                Told::plain(format!("Change of address to {} stopped", self.to("email")))
            }
            AuditAction::SubscriberSuspended => {
                Told::plain(format!("Account suspended: {}", self.to("reason")))
            }
            AuditAction::SubscriberResumed => Told::plain("Account resumed"),
            AuditAction::SubscriberLimitsChanged => Told::plain("Account limits changed"),
            AuditAction::SubscriberDeletionScheduled | AuditAction::SubscriberDeleted => {
                Told::plain("Account deleted")
            }
            AuditAction::SubscriberRestored => Told::plain("Account restored"),
            AuditAction::PortalSignedIn => Told::plain(match self.text("by") {
                "api_secret" => "Signed in with the API secret",
                "link" => "Signed in with an emailed link",
                "minted" => "Signed in with a link",
                _ => "Signed in",
            }),
            AuditAction::PortalSignedOut => Told::plain(match self.count("sessions") {
                Some(1) => "1 other session signed out".to_owned(),
                Some(sessions) => format!("{} other sessions signed out", number(sessions)),
                None => "Signed out".to_owned(),
            }),
            AuditAction::PortalLinkMinted => Told::plain("Sign-in link created"),
            AuditAction::LogsExported => Told::plain("Messages exported as CSV"),
            AuditAction::CheckoutStarted => Told::plain("Payment method page opened"),
            AuditAction::PortalOpened => Told::plain("Customer portal opened"),
            AuditAction::SubscriptionCanceled => Told::plain("Subscription cancelled"),
            AuditAction::SubscriptionReactivated => Told::plain("Subscription reactivated"),
            AuditAction::SecretsResealed => Told::plain("Secrets resealed"),
            _ => return None,
        };
        Some(told)
    }

    fn account_changed(&self) -> Told {
        let details = &self.entry.details;
        let is_restored = details.get("restored").and_then(Value::as_bool) == Some(true);
        Told::plain(match (details.get("email"), details.get("label")) {
            (Some(_), _) if is_restored => format!("Address restored to {}", self.to("email")),
            (Some(_), _) => format!("Address changed to {}", self.to("email")),
            (None, Some(_)) => format!("Account renamed to {}", self.to("label")),
            (None, None) => "Account changed".to_owned(),
        })
    }

    fn of_keys(&self, action: AuditAction) -> Option<Told> {
        let told = match action {
            AuditAction::ApiSecretRenewed => {
                let is_all = self.entry.details.get("revoked").and_then(Value::as_bool);
                Told::plain(if is_all == Some(true) {
                    "API secret rotated, and all additional keys and connect links ended"
                } else {
                    "API secret rotated"
                })
            }
            AuditAction::ApiSecretRevealed => Told::plain("API secret revealed"),
            AuditAction::ApiSecretCreated => Told::on("API secret", self.secret(), "created"),
            AuditAction::ApiSecretDeleted => Told::on("API secret", self.secret(), "deleted"),
            AuditAction::SendKeyRenewed => Told::plain("Send key rotated"),
            AuditAction::SendKeyRevealed => Told::plain("Send key revealed"),
            AuditAction::SendKeyCreated => Told::on("Send key", self.send_key(), "created"),
            AuditAction::SendKeyChanged => Told::on("Send key", self.send_key(), self.changed()),
            AuditAction::SendKeyDeleted => Told::on("Send key", self.send_key(), "deleted"),
            AuditAction::WebhookSecretRenewed => Told::plain("Webhook secret rotated"),
            AuditAction::WebhookSecretRevealed => Told::plain("Webhook secret revealed"),
            AuditAction::WebhookSecretRotated => {
                Told::on("Secret of webhook", self.webhook(), "rotated")
            }
            AuditAction::PushableKeyRenewed => Told::plain("Pushable key rotated"),
            _ => return None,
        };
        Some(told)
    }

    fn of_apps(&self, action: AuditAction) -> Option<Told> {
        let told = match action {
            AuditAction::AppCreated => Told::on("App", self.named_app(), "created"),
            AuditAction::AppChanged => Told::on("App", self.named_app(), self.changed()),
            AuditAction::AppDeleted => Told::on("App", self.named_app(), "deleted"),
            AuditAction::WebhookCreated => Told::on("Webhook", self.webhook(), "added"),
            AuditAction::WebhookChanged => {
                let is_active = self.entry.details.pointer("/is_active/to");
                Told::on(
                    "Webhook",
                    self.webhook(),
                    match is_active.and_then(Value::as_bool) {
                        Some(true) => "resumed".to_owned(),
                        Some(false) => "paused".to_owned(),
                        None => self.changed(),
                    },
                )
            }
            AuditAction::WebhookDeleted => Told::on("Webhook", self.webhook(), "deleted"),
            AuditAction::WebhookReplayed => {
                let events = match self.count("queued") {
                    Some(1) => "1 event replayed to".to_owned(),
                    Some(events) => format!("{} events replayed to", number(events)),
                    None => "Events replayed to".to_owned(),
                };
                Told::on(&events, self.receiver(), "")
            }
            AuditAction::WebhookRedelivered => Told::on("1 event replayed to", self.receiver(), ""),
            AuditAction::WebhookTested => Told::on("Test event sent to", self.receiver(), ""),
            _ => return None,
        };
        Some(told)
    }

    fn of_the_rest(&self, action: AuditAction) -> Told {
        match action {
            AuditAction::ConnectSessionCreated => Told::plain(match self.text("expected_email") {
                "" => "Connect link created".to_owned(),
                email => format!("Connect link for {email} created"),
            }),
            AuditAction::UserConnected => Told::on("Mailbox", self.mailbox(), "connected"),
            AuditAction::UserDisconnected => {
                let after = match self.text("reason") {
                    "removed" | "" => "disconnected",
                    "replaced" => "replaced by another mailbox",
                    _ => "disconnected: the provider ended the access",
                };
                Told::on("Mailbox", self.mailbox(), after)
            }
            AuditAction::UserReleased => {
                let user = self.text("user_id").to_owned();
                Told::on("User", (user, String::new()), "released")
            }
            AuditAction::MessageRetried => self.message("retried"),
            AuditAction::MessageCanceled => self.message("cancelled"),
            AuditAction::SuppressionsDeleted => {
                Told::plain(match (self.text("to_address"), self.count("deleted")) {
                    ("", Some(1)) => "1 suppressed recipient removed".to_owned(),
                    ("", Some(count)) => {
                        format!("{} suppressed recipients removed", number(count))
                    }
                    ("", None) => "Suppressed recipients removed".to_owned(),
                    (email, _) => format!("Suppressed recipient {email} removed"),
                })
            }
            other => Told::plain(other.as_str()),
        }
    }

    fn message(&self, after: &str) -> Told {
        match self.living(|id: &LogId| id.0) {
            Some((id, message)) => {
                let path = format!("/portal/messages/{id}");
                Told::on("Message to", (message.name.clone(), path), after)
            }
            None => Told::plain(format!("Message {after}")),
        }
    }
}

#[cfg(test)]
mod tests;
