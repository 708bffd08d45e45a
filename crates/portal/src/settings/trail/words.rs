//! A change as a sentence, with its object as a link.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::types::Uuid;

use crate::page::words::number;
use crate::settings::api_secrets::SecretRow;
use mailgate_domain::reports::{AuditObject, StoredEntry};
use mailgate_types::audit::AuditAction;
use mailgate_types::ids::{CredentialId, LogId, SendKeyId, WebhookConfigId};

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

/// What is known of an entry's objects.
pub(crate) struct Known<'a> {
    pub(crate) entry: &'a StoredEntry,
    /// Those that still exist.
    pub(crate) objects: &'a HashMap<Uuid, AuditObject>,
    /// The additional API secrets that still exist.
    pub(crate) secrets: &'a [SecretRow],
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

    /// The page and the name of the entry's app, if it still exists.
    pub(crate) fn app(&self) -> Option<(String, String)> {
        let app = self.objects.get(&self.entry.app_id?)?;
        Some((format!("/portal/apps/{}", app.slug), app.name.clone()))
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
                Told::plain(format!("User {} released", self.text("user_id")))
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

    /// A text in the details; empty if there is none.
    fn text(&self, field: &str) -> &str {
        let value = self.entry.details.get(field);
        value.and_then(Value::as_str).unwrap_or_default()
    }

    fn count(&self, field: &str) -> Option<i64> {
        self.entry.details.get(field).and_then(Value::as_i64)
    }

    /// The new value of a changed field.
    fn to(&self, field: &str) -> &str {
        let value = self.entry.details.get(field);
        let value = value.and_then(|change| change.get("to"));
        value.and_then(Value::as_str).unwrap_or_default()
    }

    /// "changed: name, webhook URL", by the fields in the details.
    fn changed(&self) -> String {
        let fields = self.entry.details.as_object();
        let names: Vec<String> = (fields.into_iter().flatten())
            .map(|(field, _)| field_name(field))
            .collect();
        if names.is_empty() {
            "changed".to_owned()
        } else {
            format!("changed: {}", names.join(", "))
        }
    }

    /// The living object of the target; with it, its id.
    fn living<I: std::str::FromStr>(&self, uuid: impl Fn(&I) -> Uuid) -> Option<(I, &AuditObject)> {
        let id: I = self.entry.target.as_deref()?.parse().ok()?;
        let object = self.objects.get(&uuid(&id))?;
        Some((id, object))
    }

    fn named_app(&self) -> (String, String) {
        let (path, name) = self.app().unwrap_or_default();
        let told = match self.text("name") {
            // A changed name is an object.
            "" if name.is_empty() => self.entry.app_slug.clone().unwrap_or_default(),
            "" => name,
            told => told.to_owned(),
        };
        (told, path)
    }

    fn mailbox(&self) -> (String, String) {
        let living = self.living(|id: &CredentialId| id.0);
        let path = living.map(|(id, _)| format!("/portal/mailboxes/{id}"));
        (self.text("email").to_owned(), path.unwrap_or_default())
    }

    fn webhook(&self) -> (String, String) {
        let living = self.living(|id: &WebhookConfigId| id.0);
        let url = match self.text("url") {
            "" => living
                .map(|(_, object)| object.name.clone())
                .unwrap_or_default(),
            url => url.to_owned(),
        };
        let path = living.map(|(id, _)| format!("/portal/webhooks/{id}"));
        (url, path.unwrap_or_default())
    }

    /// The endpoint that got events: the target, the configuration in the details, or else the app's own webhook URL.
    fn receiver(&self) -> (String, String) {
        let target = self.webhook();
        if !target.0.is_empty() {
            return target;
        }
        let configuration = self.text("webhook_id").parse::<WebhookConfigId>().ok();
        let living = configuration.and_then(|id| Some((id, self.objects.get(&id.0)?)));
        living.map_or_else(
            || ("a webhook".to_owned(), String::new()),
            |(id, object)| (object.name.clone(), format!("/portal/webhooks/{id}")),
        )
    }

    fn send_key(&self) -> (String, String) {
        let living = self.living(|id: &SendKeyId| id.0);
        let name = match self.text("name") {
            "" => living.as_ref().map(|(_, key)| key.name.clone()),
            name => Some(name.to_owned()),
        };
        let path = living.map(|(_, key)| format!("/portal/apps/{}#send-keys", key.slug));
        (name.unwrap_or_default(), path.unwrap_or_default())
    }

    fn secret(&self) -> (String, String) {
        let target = self.entry.target.as_deref().unwrap_or_default();
        let is_living = self.secrets.iter().any(|secret| secret.id == target);
        let path = if is_living {
            "/portal/settings#secrets"
        } else {
            ""
        };
        (self.text("name").to_owned(), path.to_owned())
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

/// A field's name in the portal's forms.
fn field_name(field: &str) -> String {
    match field {
        "logo_url" => "logo URL".to_owned(),
        "callback_url" => "redirect URL".to_owned(),
        "webhook_url" => "webhook URL".to_owned(),
        "url" => "URL".to_owned(),
        "multiuser" => "multi-user".to_owned(),
        "multilink" => "several mailboxes per user".to_owned(),
        "require_connect_session" => "single-use connect links".to_owned(),
        "suppress_bounced" => "suppression of bounced recipients".to_owned(),
        "allowed_addresses" => "allowed IP addresses".to_owned(),
        "credential_ids" => "allowed mailboxes".to_owned(),
        "expires_at" => "expiry".to_owned(),
        field => field.replace('_', " "),
    }
}

#[cfg(test)]
mod tests;
