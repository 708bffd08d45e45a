//! All paths of the REST interface.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::error_handling::HandleErrorLayer;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{BoxError, Router};
use tower::timeout::TimeoutLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{account, apps, billing, connect, health, logs, mailboxes, send, stats, webhooks};
use crate::connect::messages::{Messages, Notice};
use crate::http::body::BodyLimits;
use crate::http::failures::Failures;
use crate::http::metrics::RequestMetrics;
use crate::http::problem::Problem;
use crate::http::request;
use crate::http::state::AppState;
use crate::http::visitor::{LanguageLink, Visitor};
use crate::openapi::docs;
use crate::openapi::document::{Document, add_common_parts};
use crate::openapi::examples::add_examples;
use crate::openapi::webhooks::add_webhook_events;
use mailgate_server::page::Page;

/// The operations, each with its description.
fn operations() -> OpenApiRouter<AppState> {
    let mut operations = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(send::send))
        .routes(routes!(account::me::me, account::me::change))
        .routes(routes!(account::me::reset_api_secret))
        .routes(routes!(
            account::api_secrets::list,
            account::api_secrets::create
        ))
        .routes(routes!(account::api_secrets::delete))
        .routes(routes!(account::portal_sessions::create))
        .routes(routes!(account::audit::list))
        .routes(routes!(apps::refusals::list))
        .routes(routes!(
            apps::suppressions::list,
            apps::suppressions::delete
        ))
        .routes(routes!(apps::list, apps::create))
        .routes(routes!(apps::show, apps::change, apps::delete))
        .routes(routes!(apps::send_key))
        .routes(routes!(apps::reset_send_key))
        .routes(routes!(apps::send_keys::list, apps::send_keys::create))
        .routes(routes!(apps::send_keys::change, apps::send_keys::delete))
        .routes(routes!(apps::reset_pushable_key))
        .routes(routes!(webhooks::secret::webhook_secret))
        .routes(routes!(webhooks::secret::reset_webhook_secret))
        .routes(routes!(webhooks::secret::rotate))
        .routes(routes!(mailboxes::disconnect))
        .routes(routes!(apps::users::release))
        .routes(routes!(webhooks::list, webhooks::create))
        .routes(routes!(webhooks::change, webhooks::delete))
        .routes(routes!(webhooks::test::test))
        .routes(routes!(webhooks::deliveries::list))
        .routes(routes!(webhooks::deliveries::list_of_app))
        .routes(routes!(webhooks::delivery::show))
        .routes(routes!(webhooks::delivery::show_of_app))
        .routes(routes!(webhooks::delivery::retry))
        .routes(routes!(webhooks::delivery::retry_of_app))
        .routes(routes!(webhooks::replay::replay))
        .routes(routes!(webhooks::replay::replay_of_app))
        .routes(routes!(logs::list))
        .routes(routes!(logs::show))
        .routes(routes!(logs::actions::retry))
        .routes(routes!(logs::actions::cancel))
        .routes(routes!(logs::queue::show))
        .routes(routes!(stats::stats))
        .routes(routes!(stats::email_stats))
        .routes(routes!(connect::sessions::create))
        .routes(routes!(connect::connect, connect::begin))
        .routes(routes!(connect::result::connect_result))
        .routes(routes!(connect::callback::oauth_callback))
        .routes(routes!(account::subscribers::create))
        .routes(routes!(billing::status))
        .routes(routes!(billing::subscription))
        .routes(routes!(billing::actions::checkout_setup))
        .routes(routes!(billing::actions::reactivate))
        .routes(routes!(billing::actions::cancel_subscription))
        .routes(routes!(billing::actions::portal))
        .routes(routes!(billing::webhook::webhook))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz));
    let document = operations.get_openapi_mut();
    add_common_parts(document);
    add_webhook_events(document);
    add_examples(document);
    operations
}

/// The interface's description as JSON.
#[must_use]
pub fn openapi_json() -> String {
    // Only strings and numbers: serialization can't fail.
    operations()
        .into_openapi()
        .to_pretty_json()
        .unwrap_or_default()
}

/// The router; `limit` bounds each request. `pages` get the same layers.
pub fn router(state: AppState, pages: Router, limit: Duration) -> Router {
    let (router, document) = operations().split_for_parts();
    let frame = request::Frame {
        own_hosts: state.own_hosts.clone(),
        strangers: state.strangers.clone(),
        bodies: BodyLimits {
            idle: state.limits.http_body_idle,
            bytes_per_second: state.limits.minimum_bytes_per_second,
            finishing: state.finishing.clone(),
        },
        failures: Failures::default(),
        metrics: RequestMetrics::default(),
    };
    let in_time = (HandleErrorLayer::new(too_slow), TimeoutLayer::new(limit));
    // Any response may hold a secret or a customer's data; a cacheable one sets its own header.
    let no_store = HeaderValue::from_static("no-store");
    let not_kept = SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, no_store);
    router
        .merge(docs::docs(document, Arc::clone(&state.base_url)))
        .fallback(nothing_here)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state)
        .merge(pages)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(in_time)
        .layer(from_fn_with_state(frame, request::frame))
        .layer(not_kept)
}

/// Browsers get a page, and the front page redirects to the portal.
async fn nothing_here(
    State(state): State<AppState>,
    visitor: Visitor,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let accepts = headers
        .get(ACCEPT)
        .and_then(|accepts| accepts.to_str().ok());
    let is_browser = accepts.is_some_and(|accepts| accepts.contains("text/html"));
    match uri.path() {
        "/" if is_browser && method == Method::GET && state.portal.enabled => {
            Redirect::to("/portal").into_response()
        }
        "/" if is_browser && method == Method::GET => {
            let notice = &visitor.messages().front.gateway;
            front_page(StatusCode::OK, notice, &visitor)
        }
        _ if is_browser => {
            let notice = &visitor.messages().front.nothing;
            front_page(StatusCode::NOT_FOUND, notice, &visitor)
        }
        _ => docs::not_found().into_response(),
    }
}

#[derive(Template)]
#[template(path = "front.html")]
struct Front {
    m: &'static Messages,
    text: &'static str,
    languages: Vec<LanguageLink>,
}

fn front_page(status: StatusCode, notice: &'static Notice, visitor: &Visitor) -> Response {
    let content = Front {
        m: visitor.messages(),
        text: notice.text,
        languages: visitor.languages(),
    };
    let page = Page::new(status, notice.title, content);
    page.in_language(visitor.language()).into_response()
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "This path doesn't support this method.",
    )
}

/// The only error that the layers return.
async fn too_slow(_: BoxError) -> Problem {
    Problem::new(
        StatusCode::GATEWAY_TIMEOUT,
        "timeout",
        "The request took too long. If it was a send, it may still go through.",
    )
}

/// A panic must not leave a caller without a response. The hook logs the panic itself.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    IntoResponse::into_response(Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_error",
        "Something went wrong on our side. If it persists, quote the request_id.",
    ))
}
