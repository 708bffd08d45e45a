//! `/openapi.json`, and `/docs`, the page that shows it.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{Html, IntoResponse, Response};
use axum::{Router, body::Body};
use utoipa::openapi::OpenApi as Description;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::http::problem::Problem;
use crate::http::shared;

/// Swagger UI's own page has no title, no viewport and a box for other documents. The styles here fix faint colours,
/// and the script missing labels (WCAG 2.1, contrast and names).
const PAGE: &str = include_str!("docs/index.html");

/// Both, as routes.
pub(crate) fn docs<S: Clone + Send + Sync + 'static>(document: Description) -> Router<S> {
    let config = Config::default()
        // Swagger UI's default sends the document to a validator on the internet.
        .validator_url("none")
        .use_base_layout()
        .default_models_expand_depth(-1);
    let swagger = SwaggerUi::new("/docs")
        .config(config)
        .url("/openapi.json", document);
    Router::from(swagger)
        .layer(from_fn(page))
        .layer(from_fn_with_state(shared::Copies::default(), shared::once))
        // A missing file gets the same response as any other unknown path.
        .layer(map_response(no_such_file))
}

async fn page(request: Request<Body>, next: Next) -> Response {
    match request.uri().path() {
        "/docs/" | "/docs/index.html" if request.method().is_safe() => Html(PAGE).into_response(),
        _ => next.run(request).await,
    }
}

async fn no_such_file(response: Response) -> Response {
    if response.status() == StatusCode::NOT_FOUND {
        return not_found().into_response();
    }
    response
}

/// The response for an unknown path.
pub(crate) fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is nothing at this path.",
    )
}
