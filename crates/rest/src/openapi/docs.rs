//! `/openapi.json`, the reference at `/docs`, and Swagger UI at `/docs/try`, which sends requests.

mod files;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use utoipa::openapi::OpenApi as Description;

use super::reference;
use crate::http::problem::Problem;
use mailgate_server::content::{Caching, Content};

const READING: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; \
    frame-ancestors 'none'";

/// Swagger UI sets styles of its own on elements, and sends requests to this server.
const TRYING: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

/// The description, and what is made from it when somebody first asks.
struct Docs {
    description: Description,
    base_url: Arc<str>,
    json: OnceLock<Content>,
    page: OnceLock<Content>,
}

impl Docs {
    fn json(&self) -> &Content {
        self.json.get_or_init(|| {
            // Only strings and numbers: serialization can't fail.
            let json = serde_json::to_vec(&self.description).unwrap_or_default();
            Content::new(json, JSON, Caching::Briefly)
        })
    }

    fn page(&self) -> &Content {
        self.page.get_or_init(|| {
            let html = reference::page(&self.description, &self.base_url, &files::style_path());
            Content::new(html, HTML, Caching::Briefly)
        })
    }
}

/// All of them, as routes.
pub(crate) fn docs<S: Clone + Send + Sync + 'static>(
    description: Description,
    base_url: Arc<str>,
) -> Router<S> {
    let docs = Arc::new(Docs {
        description,
        base_url,
        json: OnceLock::new(),
        page: OnceLock::new(),
    });
    let reader = Arc::clone(&docs);
    let json = move |headers| made(docs, Docs::json, headers);
    let page = async move |headers| guarded(made(reader, Docs::page, headers).await, READING);
    Router::new()
        .route("/openapi.json", get(json))
        .route("/docs", get(page))
        .route("/docs/", get(Redirect::to("/docs")))
        .route("/docs/index.html", get(Redirect::to("/docs/try")))
        .route("/docs/try", get(try_it))
        .route("/docs/{file}", get(file))
}

/// Making and compressing takes some time, so it happens beside the requests.
async fn made(docs: Arc<Docs>, which: fn(&Docs) -> &Content, headers: HeaderMap) -> Response {
    let made = tokio::task::spawn_blocking(move || which(&docs).respond(&headers)).await;
    made.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn guarded(mut response: Response, policy: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

async fn try_it(headers: HeaderMap) -> Response {
    guarded(files::TRY.respond(&headers), TRYING)
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    files::named(&name).map_or_else(
        || not_found().into_response(),
        |content| content.respond(&headers),
    )
}

/// The response for an unknown path.
pub(crate) fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is nothing at this path.",
    )
}
