//! Common to the pages that connect mailboxes: the app's name and logo, links to try again,
//! and failures that say what to do, all in the reader's language.

use askama::Template;
use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use url::form_urlencoded::Serializer;

use super::back::Back;
use super::messages::{Messages, Names, Notice, NoticeMessages, Piece, messages};
use crate::http::visitor::{LanguageLink, PARAMETER, Visitor};
use mailgate_domain::mailboxes::{ConnectLink, LinkOrigin, Mailboxes, PublicApp};
use mailgate_server::failure::Failure;
use mailgate_server::page::Page;
use mailgate_settings::PortalSettings;
use mailgate_types::language::Language;
use mailgate_types::seal::SealError;

/// Seconds after which a user may try again.
const RETRY_SECONDS: u32 = 5;

/// An app as its users see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShownApp {
    /// Its name, as set by the subscriber.
    pub(crate) name: String,
    /// A URL, or empty.
    logo_url: String,
}

impl From<&PublicApp> for ShownApp {
    fn from(app: &PublicApp) -> Self {
        Self {
            name: app.name.clone(),
            logo_url: app.logo_url.clone(),
        }
    }
}

/// A page that says what went wrong and what to do. As in [`crate::http::problem::Problem`], its code is
/// stable.
#[derive(Debug)]
pub(crate) struct PageProblem {
    status: StatusCode,
    code: String,
    words: Words,
    of: Option<Box<Of>>,
    retry_after: Option<u32>,
    /// A hint for the app's developer: in the page's source, where users don't see it.
    for_developers: Box<str>,
    /// Only for the log.
    cause: Option<String>,
    /// `None`: an unknown reader, addressed in English.
    visitor: Option<Box<Visitor>>,
}

/// A problem's text.
#[derive(Debug)]
enum Words {
    /// A fixed notice.
    Notice(fn(&'static NoticeMessages) -> &'static Notice),
    /// A mailbox was not connected.
    NotConnected(Box<Reason>),
}

/// Why an attempt failed.
#[derive(Debug)]
struct Reason {
    /// Our explanation.
    text: Vec<Piece<'static>>,
    /// The provider's own words.
    said: Vec<Piece<'static>>,
}

/// The app that a problem belongs to.
#[derive(Debug)]
struct Of {
    app: ShownApp,
    /// The link to try again.
    again: String,
    /// The link back to the app.
    back: Option<Back>,
}

#[derive(Template)]
#[template(path = "connect/failure.html")]
struct FailurePage<'a> {
    m: &'static Messages,
    text: &'a [Piece<'a>],
    said: &'a [Piece<'a>],
    of: Option<&'a Of>,
    code: &'a str,
    request_id: &'a str,
    for_developers: &'a str,
    portal: Option<&'a PortalSettings>,
    languages: Vec<LanguageLink>,
}

impl PageProblem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        notice: fn(&'static NoticeMessages) -> &'static Notice,
    ) -> Self {
        Self {
            status,
            code: code.to_owned(),
            words: Words::Notice(notice),
            of: None,
            retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_SECONDS),
            for_developers: Box::default(),
            cause: None,
            visitor: None,
        }
    }

    /// A mailbox was not connected: with the specific code, the text for the user, and the provider's own words.
    pub(crate) fn not_connected(
        self,
        code: &str,
        text: Vec<Piece<'_>>,
        said: Vec<Piece<'_>>,
    ) -> Self {
        let owned = |piece: Piece<'_>| Piece {
            text: piece.text.into_owned().into(),
            is_foreign: piece.is_foreign,
        };
        Self {
            code: code.to_owned(),
            words: Words::NotConnected(Box::new(Reason {
                text: text.into_iter().map(owned).collect(),
                said: said.into_iter().map(owned).collect(),
            })),
            ..self
        }
    }

    /// The user may try again after so many seconds.
    pub(crate) fn after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// With a hint for the app's developer.
    pub(crate) fn for_developers(self, hint: impl Into<Box<str>>) -> Self {
        Self {
            for_developers: hint.into(),
            ..self
        }
    }

    /// Further details for the log.
    fn because(self, cause: String) -> Self {
        Self {
            cause: Some(cause),
            ..self
        }
    }

    /// 503: the database is unavailable; the user sees no details.
    pub(crate) fn database(error: &sqlx::Error) -> Self {
        let problem = PageProblem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", |notices| {
            &notices.unavailable
        });
        problem.because(format!("database query failed: {error}"))
    }

    /// 500; the cause goes to the log.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let problem = PageProblem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            |notices| &notices.internal_error,
        );
        problem.because(format!("a mailbox can't be connected: {error}"))
    }

    /// With the app's name, the link to try again, and the link back to the app.
    pub(crate) fn of(self, app: ShownApp, again: String, back: Option<Back>) -> Self {
        Self {
            of: Some(Box::new(Of { app, again, back })),
            ..self
        }
    }

    /// In this reader's language.
    pub(crate) fn to(self, visitor: Visitor) -> Self {
        Self {
            visitor: Some(Box::new(visitor)),
            ..self
        }
    }
}

impl IntoResponse for PageProblem {
    fn into_response(self) -> Response {
        let visitor = self.visitor.as_deref();
        let language = visitor.map_or_else(Language::default, Visitor::language);
        let m = messages(language);
        let (title, text, said) = match self.words {
            Words::Notice(notice) => {
                let notice = notice(&m.notices);
                (notice.title, vec![Piece::ours(notice.text)], Vec::new())
            }
            Words::NotConnected(reason) => (m.result.not_connected, reason.text, reason.said),
        };
        let content = FailurePage {
            m,
            text: &text,
            said: &said,
            of: self.of.as_deref(),
            code: &self.code,
            request_id: visitor.map_or("", |visitor| &visitor.request_id),
            for_developers: &self.for_developers,
            portal: visitor.map(|visitor| &*visitor.portal),
            languages: visitor.map(Visitor::languages).unwrap_or_default(),
        };
        let page = Page::new(self.status, title, content).in_language(language);
        let mut response = match &self.of {
            Some(of) => under_logo(page, &of.app, m),
            None => page.into_response(),
        };
        if let Some(seconds) = self.retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response.extensions_mut().insert(Failure {
            code: self.code,
            fields: String::new(),
            cause: self.cause,
        });
        response
    }
}

/// A page under the app's logo.
pub(crate) fn under_logo(
    page: Page<'_, impl Template>,
    app: &ShownApp,
    messages: &Messages,
) -> Response {
    if app.logo_url.is_empty() {
        return page.into_response();
    }
    let words = messages.logo.plain(&Names::app(&app.name));
    page.with_logo(&app.logo_url, &words).into_response()
}

/// The query of a connect link.
pub(crate) fn link_query(mailboxes: &Mailboxes, link: &ConnectLink) -> Result<String, SealError> {
    let mut query = Serializer::new(String::new());
    query.append_pair("plugin", link.plugin.as_str());
    match &link.origin {
        LinkOrigin::Session(session) => {
            query.append_pair("session", &mailboxes.seal_session(session)?);
        }
        LinkOrigin::Bare {
            user_id,
            login_hint,
        } => {
            for (name, value) in [("user_id", user_id), ("login_hint", login_hint)] {
                if let Some(value) = value {
                    query.append_pair(name, value);
                }
            }
        }
    }
    if let Some(language) = link.language {
        query.append_pair(PARAMETER, language.tag());
    }
    Ok(query.finish())
}

/// Redirects the browser with a GET; the target doesn't get this page's address.
pub(crate) fn redirect(status: StatusCode, to: &str) -> Response {
    let headers = [
        (LOCATION, to),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers).into_response()
}
