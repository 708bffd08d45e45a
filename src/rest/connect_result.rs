//! The page at the end of the way, at an address of its own: it can be loaded again, and holds no code of the
//! provider's. What it shows is sealed into its address.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::AppState;
use super::browser::Browser;
use super::connect_back::Back;
use super::connect_failure::Failure;
use super::connect_pages::{PageProblem, ShownApp, link_query, under_logo};
use super::query::QueryParameters;
use crate::mailboxes::ConnectLink;
use mailgate_server::page::Page;
use mailgate_types::seal::{SealError, SealKeys};
use mailgate_types::sealed_text;

/// What results are sealed for.
const CONTEXT: &str = "connect result";

/// What the page shows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) app: ShownApp,
    /// The address of the connected mailbox.
    pub(super) result: Result<String, Failure>,
    /// The app's key and what the link says, to begin again.
    pub(super) pushable_key: String,
    pub(super) link: ConnectLink,
    /// Digest of the browser that came back.
    pub(super) browser: Option<String>,
}

#[derive(Template)]
#[template(path = "connect/connected.html")]
struct ConnectedPage<'a> {
    app: &'a str,
    email: String,
    back: Option<Back>,
}

impl Shown {
    /// The address of the page.
    pub(super) fn address(&self, keys: &SealKeys, base_url: &str) -> Result<String, SealError> {
        let sealed = sealed_text::seal(keys, CONTEXT, self)?;
        Ok(format!("{base_url}/connect/result?shows={sealed}"))
    }
}

/// What the page's address holds.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what is read by hand")]
pub(super) struct ResultParameters {
    /// What the page shows, sealed.
    shows: String,
}

/// The page that users are sent to from `GET /oauth/callback` when the app has no `callback_url`. It may be loaded
/// again at any time.
#[utoipa::path(
    get,
    path = "/connect/result",
    operation_id = "connect_result",
    tag = "Connect",
    params(ResultParameters),
    responses(
        (status = 200, body = String, content_type = "text/html", description = "Which mailbox is connected"),
        (status = 400, body = String, content_type = "text/html", description = "`not_connected`: the user declined, granted too little, or chose another account than the expected one; the page shows a word that says which"),
        (status = 404, body = String, content_type = "text/html", description = "`link_not_found`: the address is not one of the gateway's"),
        (status = 500, description = "`internal_error`", content((String = "text/html"), (super::problem::ProblemBody = "application/problem+json"))),
        (status = 502, body = String, content_type = "text/html", description = "`provider_error`"),
        (status = 503, body = String, content_type = "text/html", description = "`provider_unavailable` or `unavailable`"),
    )
)]
pub(super) async fn connect_result(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let query = QueryParameters::parse(query.as_deref());
    let sealed = query.once("shows").ok().flatten();
    let shown: Shown = sealed
        .and_then(|sealed| sealed_text::open(&state.seal_keys, CONTEXT, sealed))
        .ok_or_else(|| {
            PageProblem::new(
                StatusCode::NOT_FOUND,
                "link_not_found",
                "Page not found",
                "The address was cut off or changed. Go back to the app that sent you here.",
            )
        })?;
    let back = Back::of(&headers, &state.base_url, &shown.pushable_key);
    Ok(match shown.result {
        Ok(email) => {
            let content = ConnectedPage {
                app: &shown.app.name,
                email,
                back,
            };
            let page = Page::new(StatusCode::OK, "Your mailbox is connected", content);
            under_logo(page, &shown.app)
        }
        Err(failure) => {
            // Whoever comes back from a provider can write its words, and must not show them to others.
            let browser = Browser::of(&headers, &state.base_url).map(|browser| browser.digest());
            let is_same = browser.is_some() && browser == shown.browser;
            let failure = if is_same {
                failure
            } else {
                failure.without_words()
            };
            let query = link_query(&state.mailboxes, &shown.link);
            let query = query.map_err(|error| PageProblem::internal(&error))?;
            let (base_url, key) = (&state.base_url, &shown.pushable_key);
            let again = format!("{base_url}/connect/{key}?{query}");
            failure.page(shown.app, again, back).into_response()
        }
    })
}

#[cfg(test)]
mod tests {
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
            let content = ConnectedPage {
                app: "<b>",
                email: "<b>@x.test".to_owned(),
                back,
            };
            let html = content.to_string();
            assert!(html.contains("<bdi>&lt;b&gt;</bdi>"), "{html}");
            assert!(!html.contains("<b>"), "{html}");
        }
    }
}
