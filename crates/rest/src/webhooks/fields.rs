//! The fields of a webhook configuration in requests, and their validation.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::field::{Field, List};
use crate::http::problem::{FieldError, Problem, take};
use crate::http::values::checked_list;
use mailgate_domain::webhooks::{NewConfiguration, WebhookConfigChange};
use mailgate_types::event_name::EventName;
use mailgate_types::signing_secret::SigningSecret;
use mailgate_types::web_address::check_webhook_address;

/// Maximum number of `events` entries to check: the catalogue has twelve.
const MOST_EVENTS: usize = 100;

/// A new webhook configuration.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateWebhookRequest {
    /// Where events go: an https address of the public internet.
    #[schema(value_type = String, required, min_length = 1, max_length = 2048, pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", example = "https://app.example/hook")]
    url: Field<String>,
    /// Event names from the catalogue; duplicates count once.
    #[schema(value_type = Vec<EventName>, required, min_items = 1, max_items = 100)]
    events: Field<List<String>>,
    /// The secret that signs the events; generated if omitted. Either `whsec_` and base64 of 24 to 64 bytes, which
    /// are the key, or any other string of 16 to 128 bytes (not counting a leading `whsec_`), which is used as the
    /// key unchanged. `secret_encoding` in the response says which.
    #[schema(value_type = Option<String>, min_length = 16, max_length = 134, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: Field<String>,
    /// Whether it receives new events.
    #[schema(value_type = Option<bool>, default = true)]
    is_active: Field<bool>,
}

/// Changes to a webhook configuration. Omitted fields stay as they are. To replace the secret, use `rotate-secret`.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct ChangeWebhookRequest {
    /// Where events go from now on, including those that are waiting for their next attempt.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2048, pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", example = "https://app.example/hook")]
    url: Field<String>,
    /// The complete list of events that it receives from now on.
    #[schema(value_type = Option<Vec<EventName>>, min_items = 1, max_items = 100)]
    events: Field<List<String>>,
    /// Whether it receives new events.
    #[schema(value_type = Option<bool>)]
    is_active: Field<bool>,
}

/// A new secret for a webhook configuration.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct RotateSecretRequest {
    /// The new secret, as at creation; generated if omitted.
    #[schema(value_type = Option<String>, min_length = 16, max_length = 134, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: Field<String>,
}

impl RotateSecretRequest {
    pub(crate) fn validate(self) -> Result<Option<SigningSecret>, Problem> {
        let mut errors = Vec::new();
        let secret = self.secret.optional("secret", &mut errors);
        let secret = take(&mut errors, "secret", secret, SigningSecret::parse);
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(secret)
    }
}

impl CreateWebhookRequest {
    pub(crate) fn validate(self, allow_private: bool) -> Result<NewConfiguration, Problem> {
        let mut errors = Vec::new();
        let url = self.url.required("url", &mut errors);
        let url = checked_url(url, allow_private, &mut errors);
        let events = self.events.required("events", &mut errors);
        let events = checked_events(events, &mut errors);
        let secret = self.secret.optional("secret", &mut errors);
        let secret = take(&mut errors, "secret", secret, SigningSecret::parse);
        let is_active = self.is_active.optional("is_active", &mut errors);
        match (url, events) {
            (Some(url), Some(events)) if errors.is_empty() => Ok(NewConfiguration {
                url,
                events,
                secret,
                is_active: is_active.unwrap_or(true),
            }),
            _ => Err(Problem::fields(errors)),
        }
    }
}

impl ChangeWebhookRequest {
    pub(crate) fn validate(self, allow_private: bool) -> Result<WebhookConfigChange, Problem> {
        let mut errors = Vec::new();
        let url = self.url.optional("url", &mut errors);
        let url = checked_url(url, allow_private, &mut errors);
        let events = self.events.optional("events", &mut errors);
        let events = checked_events(events, &mut errors);
        let is_active = self.is_active.optional("is_active", &mut errors);
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(WebhookConfigChange {
            url,
            events,
            is_active,
        })
    }
}

fn checked_url(
    text: Option<String>,
    allow_private: bool,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    take(errors, "url", text, |text| {
        check_webhook_address(text, allow_private).map(|()| text.to_owned())
    })
}

/// The given names, each once, in their order.
fn checked_events(
    list: Option<List<String>>,
    errors: &mut Vec<FieldError>,
) -> Option<Vec<EventName>> {
    if list.as_ref().is_some_and(|list| list.length == 0) {
        errors.push(FieldError::new("events", "must name at least one event"));
        return None;
    }
    let given = checked_list("events", list, MOST_EVENTS, event_name, errors)?;
    let mut events = Vec::new();
    for event in given {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Some(events)
}

/// The event's name, or the error that lists them all.
pub(crate) fn event_name(text: &str) -> Result<EventName, String> {
    text.parse().map_err(|_| {
        let names = EventName::ALL.map(EventName::as_str).join(", ");
        format!("must be one of {names}")
    })
}
