//! The last page, at an address of its own: it can be reloaded, and its address holds no authorization code.
//! Its content is sealed into its address.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::back::Back;
use super::failure::Failure;
use super::messages::{Messages, Names, Piece};
use super::pages::{PageProblem, ShownApp, link_query, under_logo};
use crate::AppState;
use crate::http::browser::Browser;
use crate::http::query::QueryParameters;
use crate::http::visitor::{LanguageLink, PARAMETER, Visitor};
use mailgate_domain::mailboxes::ConnectLink;
use mailgate_server::page::Page;
use mailgate_types::seal::{SealError, SealKeys};
use mailgate_types::sealed_text;

/// The seal's purpose.
const CONTEXT: &str = "connect result";

/// The page's content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) app: ShownApp,
    /// The address of the connected mailbox.
    pub(crate) result: Result<String, Failure>,
    /// The app's key and the link's parameters, to try again.
    pub(crate) pushable_key: String,
    pub(crate) link: ConnectLink,
    /// Digest of the browser that returned.
    pub(crate) browser: Option<String>,
}

#[derive(Template)]
#[template(path = "connect/connected.html")]
struct ConnectedPage<'a> {
    m: &'static Messages,
    app: &'a str,
    text: Vec<Piece<'a>>,
    back: Option<Back>,
    languages: Vec<LanguageLink>,
}

impl<'a> ConnectedPage<'a> {
    fn new(app: &'a str, email: &'a str, back: Option<Back>, visitor: &Visitor) -> Self {
        let m = visitor.messages();
        let names = Names {
            app,
            email,
            ..Names::default()
        };
        Self {
            m,
            app,
            text: m.result.can_send.of(&names),
            back,
            languages: visitor.languages(),
        }
    }
}

impl Shown {
    /// The page's address, in the language that the link requested.
    pub(crate) fn address(&self, keys: &SealKeys, base_url: &str) -> Result<String, SealError> {
        let sealed = sealed_text::seal(keys, CONTEXT, self)?;
        let page = format!("{base_url}/connect/result?shows={sealed}");
        Ok(match self.link.language {
            Some(language) => format!("{page}&{PARAMETER}={}", language.tag()),
            None => page,
        })
    }
}

/// The query of the page's address.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes parameters that are parsed by hand")]
pub(crate) struct ResultParameters {
    /// The page's content, sealed.
    shows: String,
    /// The language of the page, as in the link.
    #[param(value_type = Option<String>, example = "de")]
    locale: Option<String>,
}

/// The page to which `GET /oauth/callback` redirects users when the app has no `callback_url`. It can be reloaded
/// at any time.
#[utoipa::path(
    get,
    path = "/connect/result",
    operation_id = "connect_result",
    tag = "Connect",
    params(ResultParameters),
    responses(
        (status = 200, body = String, content_type = "text/html", description = "The connected mailbox"),
        (status = 400, body = String, content_type = "text/html", description = "`not_connected`: the user declined, granted too little, or chose another account than the expected one; the page shows a code that says which"),
        (status = 404, body = String, content_type = "text/html", description = "`link_not_found`: the address was not issued by this gateway"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (crate::http::problem::ProblemBody = "application/problem+json"))),
        (status = 502, body = String, content_type = "text/html", description = "`provider_error`"),
        (status = 503, body = String, content_type = "text/html", description = "`provider_unavailable` or `unavailable`"),
    )
)]
pub(crate) async fn connect_result(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let page = show(&state, query.as_deref(), &visitor, &headers);
    page.map_err(|problem| problem.to(visitor))
}

fn show(
    state: &AppState,
    query: Option<&str>,
    visitor: &Visitor,
    headers: &HeaderMap,
) -> Result<Response, PageProblem> {
    let query = QueryParameters::parse(query);
    let sealed = query.once("shows").ok().flatten();
    let shown: Shown = sealed
        .and_then(|sealed| sealed_text::open(&state.seal_keys, CONTEXT, sealed))
        .ok_or_else(|| {
            PageProblem::new(StatusCode::NOT_FOUND, "link_not_found", |notices| {
                &notices.no_such_result
            })
        })?;
    let m = visitor.messages();
    let back = Back::of(headers, &state.base_url, &shown.pushable_key);
    match shown.result {
        Ok(email) => {
            let content = ConnectedPage::new(&shown.app.name, &email, back, visitor);
            let page = Page::new(StatusCode::OK, m.result.connected, content);
            let page = page.in_language(visitor.language());
            Ok(under_logo(page, &shown.app, m))
        }
        Err(failure) => {
            // A user can forge the provider's words in the address, and must not show them to others.
            let browser = Browser::of(headers, &state.base_url).map(|browser| browser.digest());
            let is_same = browser.is_some() && browser == shown.browser;
            let failure = if is_same {
                failure
            } else {
                failure.without_words()
            };
            let link = ConnectLink {
                language: visitor.asked().or(shown.link.language),
                ..shown.link
            };
            let query = link_query(&state.mailboxes, &link);
            let query = query.map_err(|error| PageProblem::internal(&error))?;
            let (base_url, key) = (&state.base_url, &shown.pushable_key);
            let again = format!("{base_url}/connect/{key}?{query}");
            let provider = state.mailboxes.provider_settings(link.plugin);
            let label = provider.map_or(m.the_provider, |settings| &settings.label);
            let problem = failure.page(&shown.app.name, label, m);
            Err(problem.of(shown.app, again, back))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::HeaderValue;
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn nothing_foreign_is_markup() {
        let mut headers = HeaderMap::new();
        let site = HeaderValue::from_static("mailgate_back=pk_x~https://app.example");
        headers.insert(COOKIE, site);
        let known = Back::of(&headers, "http://127.0.0.1:8080", "pk_x");
        assert!(known.is_some());
        for back in [known, None] {
            let visitor = Visitor::new("<b>=<b>", &headers, String::new(), Arc::default());
            let content = ConnectedPage::new("<b>", "<b>@x.test", back, &visitor);
            let html = content.to_string();
            assert!(html.contains("<bdi>&lt;b&gt;</bdi>"), "{html}");
            assert!(!html.contains("<b>"), "{html}");
        }
    }
}
