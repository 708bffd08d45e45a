//! A change as a sentence, with its object as a link.

use serde_json::Value;

use super::known::Known;
use crate::page::sentence::Sentence;
use crate::page::words::number;
use mailgate_types::audit::AuditAction;
use mailgate_types::ids::LogId;

/// "Mailbox ada@example.com connected": words, an object by its name and page, and words. Without a name the words stand
/// alone.
fn on(before: &str, (name, path): (String, String), after: impl AsRef<str>) -> Sentence {
    let mut sentence = Sentence::of(before);
    if !name.is_empty() {
        sentence = sentence.then(" ").naming(name, path);
    }
    match after.as_ref() {
        "" => sentence,
        after => sentence.then(format!(" {after}")),
    }
}

impl Known<'_> {
    /// The entry's sentence. An action that this release doesn't know is shown by its name.
    pub(crate) fn sentence(&self) -> Sentence {
        let Ok(action) = self.entry.action.parse::<AuditAction>() else {
            return Sentence::of(self.entry.action.as_str());
        };
        (self.of_account(action))
            .or_else(|| self.of_keys(action))
            .or_else(|| self.of_apps(action))
            .unwrap_or_else(|| self.of_the_rest(action))
    }

    fn of_account(&self, action: AuditAction) -> Option<Sentence> {
        let sentence = match action {
            AuditAction::SubscriberCreated => Sentence::of("Account created"),
            AuditAction::SubscriberChanged => self.account_changed(),
            AuditAction::EmailChangeRequested => Sentence::of(format!(
                "Change of address to {} requested",
                self.to("email")
            )),
            AuditAction::EmailChangeStopped => {
                Sentence::of(format!("Change of address to {} stopped", self.to("email")))
            }
            AuditAction::SubscriberSuspended => {
                Sentence::of(format!("Account suspended: {}", self.to("reason")))
            }
            AuditAction::SubscriberResumed => Sentence::of("Account resumed"),
            AuditAction::SubscriberLimitsChanged => Sentence::of("Account limits changed"),
            AuditAction::SubscriberDeletionScheduled | AuditAction::SubscriberDeleted => {
                Sentence::of("Account deleted")
            }
            AuditAction::SubscriberRestored => Sentence::of("Account restored"),
            AuditAction::PortalSignedIn => Sentence::of(match self.text("by") {
                "api_secret" => "Signed in with the API secret",
                "link" => "Signed in with an emailed link",
                "minted" => "Signed in with a link",
                _ => "Signed in",
            }),
            AuditAction::PortalSignedOut => Sentence::of(match self.count("sessions") {
                Some(1) => "1 other session signed out".to_owned(),
                Some(sessions) => format!("{} other sessions signed out", number(sessions)),
                None => "Signed out".to_owned(),
            }),
            AuditAction::PortalLinkMinted => Sentence::of("Sign-in link created"),
            AuditAction::LogsExported => Sentence::of("Messages exported as CSV"),
            AuditAction::CheckoutStarted => Sentence::of("Payment method page opened"),
            AuditAction::PortalOpened => Sentence::of("Customer portal opened"),
            AuditAction::SubscriptionCanceled => Sentence::of("Subscription cancelled"),
            AuditAction::SubscriptionReactivated => Sentence::of("Subscription reactivated"),
            AuditAction::SecretsResealed => Sentence::of("Secrets resealed"),
            _ => return None,
        };
        Some(sentence)
    }

    fn account_changed(&self) -> Sentence {
        let details = &self.entry.details;
        let is_restored = details.get("restored").and_then(Value::as_bool) == Some(true);
        Sentence::of(match (details.get("email"), details.get("label")) {
            (Some(_), _) if is_restored => format!("Address restored to {}", self.to("email")),
            (Some(_), _) => format!("Address changed to {}", self.to("email")),
            (None, Some(_)) => format!("Account renamed to {}", self.to("label")),
            (None, None) => "Account changed".to_owned(),
        })
    }

    fn of_keys(&self, action: AuditAction) -> Option<Sentence> {
        let sentence = match action {
            AuditAction::ApiSecretRenewed => {
                let is_all = self.entry.details.get("revoked").and_then(Value::as_bool);
                Sentence::of(if is_all == Some(true) {
                    "API secret rotated, and all additional keys and connect links ended"
                } else {
                    "API secret rotated"
                })
            }
            AuditAction::ApiSecretRevealed => Sentence::of("API secret revealed"),
            AuditAction::ApiSecretCreated => on("API secret", self.secret(), "created"),
            AuditAction::ApiSecretDeleted => on("API secret", self.secret(), "deleted"),
            AuditAction::SendKeyRenewed => Sentence::of("Send key rotated"),
            AuditAction::SendKeyRevealed => Sentence::of("Send key revealed"),
            AuditAction::SendKeyCreated => on("Send key", self.send_key(), "created"),
            AuditAction::SendKeyChanged => on("Send key", self.send_key(), self.changed()),
            AuditAction::SendKeyDeleted => on("Send key", self.send_key(), "deleted"),
            AuditAction::WebhookSecretRenewed => Sentence::of("Webhook secret rotated"),
            AuditAction::WebhookSecretRevealed => Sentence::of("Webhook secret revealed"),
            AuditAction::WebhookSecretRotated => on("Secret of webhook", self.webhook(), "rotated"),
            AuditAction::PushableKeyRenewed => Sentence::of("Pushable key rotated"),
            _ => return None,
        };
        Some(sentence)
    }

    fn of_apps(&self, action: AuditAction) -> Option<Sentence> {
        let sentence = match action {
            AuditAction::AppCreated => on("App", self.named_app(), "created"),
            AuditAction::AppChanged => on("App", self.named_app(), self.changed()),
            AuditAction::AppDeleted => on("App", self.named_app(), "deleted"),
            AuditAction::WebhookCreated => on("Webhook", self.webhook(), "added"),
            AuditAction::WebhookChanged => {
                let is_active = self.entry.details.pointer("/is_active/to");
                on(
                    "Webhook",
                    self.webhook(),
                    match is_active.and_then(Value::as_bool) {
                        Some(true) => "resumed".to_owned(),
                        Some(false) => "paused".to_owned(),
                        None => self.changed(),
                    },
                )
            }
            AuditAction::WebhookDeleted => on("Webhook", self.webhook(), "deleted"),
            AuditAction::WebhookReplayed => {
                let events = match self.count("queued") {
                    Some(1) => "1 event replayed to".to_owned(),
                    Some(events) => format!("{} events replayed to", number(events)),
                    None => "Events replayed to".to_owned(),
                };
                on(&events, self.receiver(), "")
            }
            AuditAction::WebhookRedelivered => on("1 event replayed to", self.receiver(), ""),
            AuditAction::WebhookTested => on("Test event sent to", self.receiver(), ""),
            _ => return None,
        };
        Some(sentence)
    }

    fn of_the_rest(&self, action: AuditAction) -> Sentence {
        match action {
            AuditAction::ConnectSessionCreated => Sentence::of(match self.text("expected_email") {
                "" => "Connect link created".to_owned(),
                email => format!("Connect link for {email} created"),
            }),
            AuditAction::UserConnected => on("Mailbox", self.mailbox(), "connected"),
            AuditAction::UserDisconnected => {
                let after = match self.text("reason") {
                    "removed" | "" => "disconnected",
                    "replaced" => "replaced by another mailbox",
                    _ => "disconnected: the provider ended the access",
                };
                on("Mailbox", self.mailbox(), after)
            }
            AuditAction::UserReleased => {
                let user = self.text("user_id").to_owned();
                on("User", (user, String::new()), "released")
            }
            AuditAction::MessageRetried => self.message("retried"),
            AuditAction::MessageCanceled => self.message("cancelled"),
            AuditAction::SuppressionsDeleted => {
                Sentence::of(match (self.text("to_address"), self.count("deleted")) {
                    ("", Some(1)) => "1 suppressed recipient removed".to_owned(),
                    ("", Some(count)) => {
                        format!("{} suppressed recipients removed", number(count))
                    }
                    ("", None) => "Suppressed recipients removed".to_owned(),
                    (email, _) => format!("Suppressed recipient {email} removed"),
                })
            }
            other => Sentence::of(other.as_str()),
        }
    }

    fn message(&self, after: &str) -> Sentence {
        match self.living(|id: &LogId| id.0) {
            Some((id, message)) => {
                let path = format!("/portal/messages/{id}");
                on("Message to", (message.name.clone(), path), after)
            }
            None => Sentence::of(format!("Message {after}")),
        }
    }
}

#[cfg(test)]
mod tests;
