//! A link to connect a mailbox: built from the app's values for the user, with its QR code.

use serde::Deserialize;

use crate::page::frame::query;
use crate::page::qr_code::{Drawing, draw};
use crate::page::words::Moment;
use crate::page::wrong::Wrong;
use mailgate_domain::accounts::App;
use mailgate_domain::mailboxes::{
    CreateSessionError, Mailboxes, SESSION_LIFE, SessionRequest, USER_ID_LENGTH,
};
use mailgate_types::audit::Author;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::plugin::Plugin;

/// The form for a link.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LinkForm {
    pub(crate) user_id: String,
    pub(crate) plugin: String,
    pub(crate) expected_email: String,
    /// `session`: for one mailbox, valid for a day; or `open`: for everyone, with no expiry.
    pub(crate) kind: String,
}

/// The validated form.
#[derive(Debug)]
pub(crate) struct Wanted {
    user_id: Option<String>,
    plugin: Option<Plugin>,
    expected_email: Option<String>,
    is_personal: bool,
}

/// A link.
pub(crate) struct Link {
    pub(crate) url: String,
    /// When it expires; `None`: never.
    pub(crate) expires_at: Option<Moment>,
    /// `None`: the link is too long for one.
    pub(crate) code: Option<Drawing>,
}

fn given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

impl LinkForm {
    /// Validates all of it.
    pub(crate) fn validate(&self, app: &App) -> Result<Wanted, Wrong> {
        let mut wrong = Wrong::default();
        let user_id = given(&self.user_id);
        match user_id {
            Some(id) if id.chars().count() > USER_ID_LENGTH || id.contains(char::is_control) => {
                wrong.add("user_id", "Enter at most 255 characters.");
            }
            None if app.multiuser => {
                let text = "Enter your own ID for the user: the app has several users.";
                wrong.add("user_id", text);
            }
            _ => {}
        }
        let plugin = given(&self.plugin).map(str::parse).transpose();
        if plugin.is_err() {
            wrong.add("plugin", "Choose one of the providers.");
        }
        let email = given(&self.expected_email).map(EmailAddress::parse);
        let email = email.transpose();
        if email.is_err() {
            wrong.add("expected_email", "Enter one email address.");
        }
        let is_personal = self.kind != "open";
        if !is_personal && app.require_connect_session {
            wrong.add("kind", "The app accepts only personal links.");
        }
        match (plugin, email) {
            (Ok(plugin), Ok(email)) if wrong.is_empty() => Ok(Wanted {
                user_id: user_id.map(ToOwned::to_owned),
                plugin,
                expected_email: email.map(|email| email.to_string()),
                is_personal,
            }),
            _ => Err(wrong),
        }
    }
}

impl Wanted {
    /// The link, at the gateway's public `base_url`.
    pub(crate) async fn link(
        self,
        app: &App,
        mailboxes: &Mailboxes,
        base_url: &str,
        author: Author,
    ) -> Result<Link, CreateSessionError> {
        let (url, expires_at) = if self.is_personal {
            let request = SessionRequest {
                user_id: self.user_id,
                plugin: self.plugin,
                login_hint: self.expected_email.clone(),
                expected_email: self.expected_email,
                callback_url: None,
                life: SESSION_LIFE,
            };
            let session = mailboxes.create_session(app.id, &app.pushable_key, request, author);
            let session = session.await?;
            let expires_at = Moment::new(session.expires_at);
            (format!("{base_url}{}", session.link), Some(expires_at))
        } else {
            let parameters = [
                ("plugin", self.plugin.map(Plugin::as_str)),
                ("user_id", self.user_id.as_deref()),
                ("login_hint", self.expected_email.as_deref()),
            ];
            let parameters: Vec<(&str, &str)> = parameters
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)))
                .collect();
            let way = format!("{base_url}/connect/{}", app.pushable_key);
            if parameters.is_empty() {
                (way, None)
            } else {
                (format!("{way}?{}", query(&parameters)), None)
            }
        };
        Ok(Link {
            code: draw(&url),
            url,
            expires_at,
        })
    }
}
