//! The fields of an app in forms, and their validation.

use serde::Deserialize;

use crate::page::fields::label;
use crate::page::wrong::Wrong;
use mailgate_domain::accounts::{App, AppFields, Change};
use mailgate_types::web_address::{check_web_address, check_webhook_address};

/// A new app, or an app's options. Unticked boxes aren't sent.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct AppForm {
    pub(crate) name: String,
    pub(crate) logo_url: String,
    pub(crate) callback_url: String,
    pub(crate) webhook_url: String,
    pub(crate) multiuser: bool,
    pub(crate) multilink: bool,
    pub(crate) require_connect_session: bool,
    pub(crate) suppress_bounced: bool,
}

impl From<&App> for AppForm {
    fn from(app: &App) -> Self {
        Self {
            name: app.name.clone(),
            logo_url: app.logo_url.clone(),
            callback_url: app.callback_url.clone(),
            webhook_url: app.webhook_url.clone(),
            multiuser: app.multiuser,
            multilink: app.multilink,
            require_connect_session: app.require_connect_session,
            suppress_bounced: app.suppress_bounced,
        }
    }
}

impl AppForm {
    /// Itself with trimmed texts, and its errors. Values unchanged from `before` are valid: the
    /// rules may have changed since.
    fn checked(&self, before: &Self, allow_private: bool) -> (Self, Wrong) {
        let mut wrong = Wrong::default();
        let form = Self {
            name: self.name.trim().to_owned(),
            logo_url: self.logo_url.trim().to_owned(),
            callback_url: self.callback_url.trim().to_owned(),
            webhook_url: self.webhook_url.trim().to_owned(),
            ..self.clone()
        };
        if let Err(text) = label(&form.name)
            && form.name != before.name
        {
            wrong.add("name", text);
        }
        let mut check = |field, given: &str, before: &str, is_right| {
            if !given.is_empty() && given != before {
                let checked: Result<(), _> = is_right;
                if let Err(error) = checked {
                    wrong.add(field, format!("It {error}."));
                }
            }
        };
        let logo = check_web_address(&form.logo_url, allow_private);
        check("logo_url", &form.logo_url, &before.logo_url, logo);
        let back = check_web_address(&form.callback_url, allow_private);
        check(
            "callback_url",
            &form.callback_url,
            &before.callback_url,
            back,
        );
        let hook = check_webhook_address(&form.webhook_url, allow_private);
        check("webhook_url", &form.webhook_url, &before.webhook_url, hook);
        (form, wrong)
    }

    /// A new app.
    pub(crate) fn creation(&self, allow_private: bool) -> Result<AppFields, Wrong> {
        let (form, mut wrong) = self.checked(&Self::default(), allow_private);
        if form.name.is_empty() {
            wrong.add("name", "Enter a name.");
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(AppFields {
            name: form.name,
            logo_url: form.logo_url,
            multiuser: form.multiuser,
            multilink: form.multilink,
            require_connect_session: form.require_connect_session.then_some(true),
            suppress_bounced: form.suppress_bounced,
            webhook_url: form.webhook_url,
            callback_url: form.callback_url,
        })
    }

    /// The changes to an app: only the differing fields, as other programs may change the rest meanwhile.
    pub(crate) fn change(&self, app: &App, allow_private: bool) -> Result<Change, Wrong> {
        let before = Self::from(app);
        let (form, wrong) = self.checked(&before, allow_private);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let flag = |given: bool, before: bool| (given != before).then_some(given);
        let text = |given: String, before: &String| (given != *before).then_some(given);
        Ok(Change {
            name: text(form.name, &before.name),
            logo_url: text(form.logo_url, &before.logo_url),
            multiuser: flag(form.multiuser, before.multiuser),
            multilink: flag(form.multilink, before.multilink),
            require_connect_session: flag(
                form.require_connect_session,
                before.require_connect_session,
            ),
            suppress_bounced: flag(form.suppress_bounced, before.suppress_bounced),
            webhook_url: text(form.webhook_url, &before.webhook_url),
            callback_url: text(form.callback_url, &before.callback_url),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_app_needs_a_name_and_right_addresses() {
        let form = AppForm {
            logo_url: "x".to_owned(),
            webhook_url: "http://example.com".to_owned(),
            ..AppForm::default()
        };
        let wrong = form.creation(false).err().unwrap_or_default();
        for field in ["name", "logo_url", "webhook_url"] {
            assert!(wrong.of(field).is_some(), "{field}");
        }
        assert_eq!(wrong.of("callback_url"), None);
    }

    #[test]
    fn a_multiuser_app_requires_sessions_by_default() {
        let form = AppForm {
            name: " Shop ".to_owned(),
            multiuser: true,
            ..AppForm::default()
        };
        let fields = form.creation(false).unwrap_or_default();
        assert_eq!(fields.name, "Shop");
        assert!(fields.requires_connect_session());
    }
}
