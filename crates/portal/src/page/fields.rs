//! Forms and queries from browsers, and the limits of their fields.

use axum::extract::{Form, FromRequest, FromRequestParts, OptionalFromRequest, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

use super::problem::PortalProblem;
use super::said::Said;
use crate::PortalState;
use mailgate_types::name::{InvalidName, check_name};

/// A submitted form.
#[derive(Default)]
pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<PortalState> for Sent<T> {
    type Rejection = PortalProblem;

    async fn from_request(request: Request, state: &PortalState) -> Result<Self, PortalProblem> {
        let read = Form::from_request(request, state).await;
        read.map(|Form(form)| Self(form))
            .map_err(|refused| match refused.status() {
                StatusCode::PAYLOAD_TOO_LARGE => PortalProblem::too_large(),
                _ => PortalProblem::unreadable(),
            })
    }
}

/// A program may omit the form if all of its fields are optional.
impl<T: DeserializeOwned> OptionalFromRequest<PortalState> for Sent<T> {
    type Rejection = PortalProblem;

    async fn from_request(
        request: Request,
        state: &PortalState,
    ) -> Result<Option<Self>, PortalProblem> {
        if !request.headers().contains_key(CONTENT_TYPE) {
            return Ok(None);
        }
        let sent = <Self as FromRequest<PortalState>>::from_request(request, state).await;
        sent.map(Some)
    }
}

/// The fields of a form, with all their values.
pub(crate) type Fields = Vec<(String, String)>;

/// The value of a field; empty if it is missing.
pub(crate) fn value<'a>(fields: &'a Fields, name: &str) -> &'a str {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map_or("", |(_, value)| value.trim())
}

/// All values of a field.
pub(crate) fn values<'a>(fields: &'a Fields, name: &'a str) -> impl Iterator<Item = &'a str> {
    (fields.iter())
        .filter(move |(field, _)| field == name)
        .map(|(_, value)| value.as_str())
}

/// The query of a page.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<PortalState> for Asked<T> {
    type Rejection = PortalProblem;

    async fn from_request_parts(parts: &mut Parts, _: &PortalState) -> Result<Self, PortalProblem> {
        let read = Query::try_from_uri(&parts.uri);
        read.map(|Query(query)| Self(query))
            .map_err(|_| PortalProblem::unreadable_address())
    }
}

/// The query parameters that every page accepts.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Common {
    /// The app's slug; empty: all apps.
    #[serde(default, deserialize_with = "without_nul")]
    app: String,
    /// The action before the page was shown: one of our codes.
    #[serde(default)]
    done: String,
}

/// Postgres stores no NUL.
fn without_nul<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.contains('\0') {
        return Err(D::Error::custom("it has a NUL"));
    }
    Ok(text)
}

impl Common {
    /// The selected app.
    pub(crate) fn app(&self) -> Option<&str> {
        Some(self.app.as_str()).filter(|app| !app.is_empty())
    }

    /// The tab that the last action belongs to, if it isn't the page's first one.
    pub(crate) fn tab(&self) -> Option<&'static str> {
        Some(match self.done.as_str() {
            "unsuppressed" => "activity",
            "key-deleted" => "send-keys",
            "ended" | "others-ended" => "sessions",
            "secret-deleted" => "secrets",
            _ => return None,
        })
    }

    /// Whether this was the last action.
    pub(crate) fn has_done(&self, done: &str) -> bool {
        self.done == done
    }

    /// The message for the last action.
    pub(crate) fn said(&self) -> Said {
        Said::of(&self.done)
    }
}

/// A display name, or the error.
pub(crate) fn label(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    match check_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(InvalidName::Empty) => Err("Enter a name."),
        Err(InvalidName::TooLong | InvalidName::ControlCharacters) => {
            Err("Enter a name of at most 255 characters, without control characters.")
        }
    }
}

/// A portal path to continue to. Anything else could redirect people from our sign-in to another site.
pub(crate) fn next_path(text: &str) -> &str {
    let is_ours = text == "/portal" || text.starts_with("/portal/") || text.starts_with("/portal?");
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // Browsers remove these segments from a path, in either spelling.
    let path = text.split_once('?').map_or(text, |(path, _)| path);
    let climbs = path.to_ascii_lowercase().replace("%2e", ".");
    let climbs = climbs.split('/').any(|part| matches!(part, "." | ".."));
    // After signing out or using a link, nobody wants to return there.
    if is_ours && is_plain && !climbs && !text.starts_with("/portal/sign-") && !text.contains("//")
    {
        text
    } else {
        "/portal"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_portal_are_gone_on_to() {
        for (text, expected) in [
            ("/portal", "/portal"),
            (
                "/portal/messages?status=sent",
                "/portal/messages?status=sent",
            ),
            ("/portal?app=demo", "/portal?app=demo"),
            ("//evil.example/portal", "/portal"),
            ("https://evil.example/portal/", "/portal"),
            ("/portal//evil.example", "/portal"),
            ("/portal/\\evil.example", "/portal"),
            ("/portal/\r\nx", "/portal"),
            ("/portalx", "/portal"),
            ("/portal/../../evil", "/portal"),
            ("/portal/%2e%2E/evil", "/portal"),
            ("/portal/.%2e/evil?x=1", "/portal"),
            ("/portal/apps/a.b?next=../x", "/portal/apps/a.b?next=../x"),
            ("/portal/sign-out", "/portal"),
            ("", "/portal"),
        ] {
            assert_eq!(next_path(text), expected, "{text}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(label(" Ada "), Ok("Ada".to_owned()));
        assert_eq!(label(" \u{200b} "), Err("Enter a name."));
        for wrong in ["a\u{7}", &"x".repeat(256)] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }
}
