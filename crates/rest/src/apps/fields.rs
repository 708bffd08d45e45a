//! The fields of an app in requests, and their validation, by the rules in `types` (`name`, `web_address` …).

use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::field::Field;
use crate::http::problem::{FieldError, Problem, take};
use crate::http::values::checked_name;
use mailgate_domain::accounts::{AppFields, Change};
use mailgate_types::web_address::{InvalidWebAddress, check_web_address, check_webhook_address};

/// A new app.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateAppRequest {
    /// The app's display name; the `app_id` is derived from it.
    #[schema(value_type = String, required, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    name: Field<String>,
    /// Shown to end users: an https address, or empty.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    logo_url: Field<String>,
    /// Whether the app has several end users.
    #[schema(value_type = Option<bool>, default = false)]
    multiuser: Field<bool>,
    /// Whether an end user may connect several mailboxes of one plugin.
    #[schema(value_type = Option<bool>, default = false)]
    multilink: Field<bool>,
    /// Whether mailboxes can be connected only through connect sessions, and not through links that anyone can
    /// write. By default true for a multiuser app.
    #[schema(value_type = Option<bool>)]
    require_connect_session: Field<bool>,
    /// Whether messages to recipients that have hard-bounced in the last 30 days are refused.
    #[schema(value_type = Option<bool>, default = false)]
    suppress_bounced: Field<bool>,
    /// Receives every event: an https address, or empty.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    webhook_url: Field<String>,
    /// Where end users go after connecting: an https address, or empty.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    callback_url: Field<String>,
}

/// Changes to an app. Omitted fields stay as they are.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct ChangeAppRequest {
    /// The app's display name; the `app_id` doesn't change.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    name: Field<String>,
    /// An https address, or empty to remove it.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    logo_url: Field<String>,
    /// Refused with 409 if mailboxes would be left without a user.
    #[schema(value_type = Option<bool>)]
    multiuser: Field<bool>,
    /// Refused with 409 while a user has several mailboxes of one plugin.
    #[schema(value_type = Option<bool>)]
    multilink: Field<bool>,
    /// Whether mailboxes can be connected only through connect sessions. By default it becomes true when the app
    /// becomes multiuser.
    #[schema(value_type = Option<bool>)]
    require_connect_session: Field<bool>,
    /// Whether messages to recipients that have hard-bounced in the last 30 days are refused.
    #[schema(value_type = Option<bool>)]
    suppress_bounced: Field<bool>,
    /// An https address, or empty to remove it.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    webhook_url: Field<String>,
    /// An https address, or empty to remove it.
    #[schema(value_type = Option<String>, max_length = 2048, pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+)?$")]
    callback_url: Field<String>,
}

impl CreateAppRequest {
    pub(crate) fn validate(self, allow_private: bool) -> Result<AppFields, Problem> {
        let mut errors = Vec::new();
        let name = self.name.required("name", &mut errors);
        let name = checked_name("name", name, &mut errors);
        let mut address = |field: &'static str, given: Field<String>, check: Check| {
            checked_address(field, given, allow_private, check, &mut errors).unwrap_or_default()
        };
        let logo_url = address("logo_url", self.logo_url, check_web_address);
        let webhook_url = address("webhook_url", self.webhook_url, check_webhook_address);
        let callback_url = address("callback_url", self.callback_url, check_web_address);
        let multiuser = self.multiuser.optional("multiuser", &mut errors);
        let multilink = self.multilink.optional("multilink", &mut errors);
        let require_connect_session = self
            .require_connect_session
            .optional("require_connect_session", &mut errors);
        let suppress_bounced = (self.suppress_bounced).optional("suppress_bounced", &mut errors);
        match name {
            Some(name) if errors.is_empty() => Ok(AppFields {
                name,
                logo_url,
                multiuser: multiuser.unwrap_or(false),
                multilink: multilink.unwrap_or(false),
                require_connect_session,
                suppress_bounced: suppress_bounced.unwrap_or(false),
                webhook_url,
                callback_url,
            }),
            _ => Err(Problem::fields(errors)),
        }
    }
}

impl ChangeAppRequest {
    pub(crate) fn validate(self, allow_private: bool) -> Result<Change, Problem> {
        let mut errors = Vec::new();
        let name = self.name.optional("name", &mut errors);
        let name = checked_name("name", name, &mut errors);
        let mut address = |field: &'static str, given: Field<String>, check: Check| {
            checked_address(field, given, allow_private, check, &mut errors)
        };
        let logo_url = address("logo_url", self.logo_url, check_web_address);
        let webhook_url = address("webhook_url", self.webhook_url, check_webhook_address);
        let callback_url = address("callback_url", self.callback_url, check_web_address);
        let multiuser = self.multiuser.optional("multiuser", &mut errors);
        let multilink = self.multilink.optional("multilink", &mut errors);
        let require_connect_session = self
            .require_connect_session
            .optional("require_connect_session", &mut errors);
        let suppress_bounced = (self.suppress_bounced).optional("suppress_bounced", &mut errors);
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(Change {
            name,
            logo_url,
            multiuser,
            multilink,
            require_connect_session,
            suppress_bounced,
            webhook_url,
            callback_url,
        })
    }
}

/// The rule for an address, depending on whether private ones are allowed.
type Check = fn(&str, bool) -> Result<(), InvalidWebAddress>;

/// An address, or an empty string for none.
fn checked_address(
    field: &'static str,
    given: Field<String>,
    allow_private: bool,
    check: Check,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let text = given.optional(field, errors);
    take(errors, field, text, |text| {
        if !text.is_empty() {
            check(text, allow_private)?;
        }
        Ok::<_, InvalidWebAddress>(text.to_owned())
    })
}
