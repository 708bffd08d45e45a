//! What is known of an entry: its details, and its objects with their pages.

use std::collections::HashMap;
use std::str::FromStr;

use serde_json::Value;
use sqlx::types::Uuid;

use crate::settings::api_secrets::SecretRow;
use mailgate_domain::reports::{AuditObject, StoredEntry};
use mailgate_types::ids::{CredentialId, SendKeyId, WebhookConfigId};

/// What is known of an entry's objects.
pub(super) struct Known<'a> {
    pub(super) entry: &'a StoredEntry,
    /// Those that still exist.
    pub(super) objects: &'a HashMap<Uuid, AuditObject>,
    /// The additional API secrets that still exist.
    pub(super) secrets: &'a [SecretRow],
}

impl Known<'_> {
    /// The page and the name of the entry's app, if it still exists.
    pub(super) fn app(&self) -> Option<(String, String)> {
        let app = self.objects.get(&self.entry.app_id?)?;
        Some((format!("/portal/apps/{}", app.slug), app.name.clone()))
    }

    /// A text in the details; empty if there is none.
    pub(super) fn text(&self, field: &str) -> &str {
        let value = self.entry.details.get(field);
        value.and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn count(&self, field: &str) -> Option<i64> {
        self.entry.details.get(field).and_then(Value::as_i64)
    }

    /// The new value of a changed field.
    pub(super) fn to(&self, field: &str) -> &str {
        let value = self.entry.details.get(field);
        let value = value.and_then(|change| change.get("to"));
        value.and_then(Value::as_str).unwrap_or_default()
    }

    /// "changed: name, webhook URL", by the fields in the details.
    pub(super) fn changed(&self) -> String {
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
    pub(super) fn living<I: FromStr>(
        &self,
        uuid: impl Fn(&I) -> Uuid,
    ) -> Option<(I, &AuditObject)> {
        let id: I = self.entry.target.as_deref()?.parse().ok()?;
        let object = self.objects.get(&uuid(&id))?;
        Some((id, object))
    }

    pub(super) fn named_app(&self) -> (String, String) {
        let (path, name) = self.app().unwrap_or_default();
        let name = match self.text("name") {
            // A changed name is an object.
            "" if name.is_empty() => self.entry.app_slug.clone().unwrap_or_default(),
            "" => name,
            former => former.to_owned(),
        };
        (name, path)
    }

    pub(super) fn mailbox(&self) -> (String, String) {
        let living = self.living(|id: &CredentialId| id.0);
        let path = living.map(|(id, _)| format!("/portal/mailboxes/{id}"));
        (self.text("email").to_owned(), path.unwrap_or_default())
    }

    pub(super) fn webhook(&self) -> (String, String) {
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
    pub(super) fn receiver(&self) -> (String, String) {
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

    pub(super) fn send_key(&self) -> (String, String) {
        let living = self.living(|id: &SendKeyId| id.0);
        let name = match self.text("name") {
            "" => living.as_ref().map(|(_, key)| key.name.clone()),
            name => Some(name.to_owned()),
        };
        let path = living.map(|(_, key)| format!("/portal/apps/{}#send-keys", key.slug));
        (name.unwrap_or_default(), path.unwrap_or_default())
    }

    pub(super) fn secret(&self) -> (String, String) {
        let target = self.entry.target.as_deref().unwrap_or_default();
        let is_living = self.secrets.iter().any(|secret| secret.id == target);
        let path = if is_living {
            "/portal/settings#secrets"
        } else {
            ""
        };
        (self.text("name").to_owned(), path.to_owned())
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
