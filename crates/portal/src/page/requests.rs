//! Common to every request to the portal: it refuses changes from other sites' pages, renders problems as pages, and
//! limits what browsers store and load.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::frame::Frame;
use super::problem::PortalProblem;
use super::session::token;
use crate::PortalState;
use crate::page::LeadsAway;
use mailgate_server::failure::RequestId;
use mailgate_server::same_site::is_foreign;

/// Maximum duration of a request; people have left by then. A test event takes longest, waiting for its endpoint.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long a problem's page waits for its frame.
const FRAME: Duration = Duration::from_secs(2);

/// No inline code, nothing from other sites.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The same for pages whose forms lead to other sites: browsers apply the policy to redirects as well.
const LEADING_AWAY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'";

/// Checks a request, and completes its response.
pub(crate) async fn frame(
    State(state): State<PortalState>,
    request: Request,
    next: Next,
) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let (token, path) = (
        token(request.headers(), &state),
        request.uri().path().to_owned(),
    );
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = if changes && is_foreign(request.headers(), request.uri()) {
        PortalProblem::foreign().into_response()
    } else {
        within(PATIENCE, next.run(request)).await
    };
    if let Some(problem) = response.extensions_mut().remove::<PortalProblem>() {
        let id = id.map(|RequestId(id)| id).unwrap_or_default();
        let token = token.filter(|_| !problem.is_outside());
        let title = problem.title();
        let frame = timeout(FRAME, Frame::around(&state, token, &path, title)).await;
        let frame = frame.unwrap_or_else(|_| Frame::outside(&state, title));
        response = problem.render(frame, &id);
    }
    let policy = match response.extensions().get::<LeadsAway>() {
        Some(LeadsAway) => LEADING_AWAY,
        None => POLICY,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The back button shows nothing after signing out.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn within(patience: Duration, answer: impl Future<Output = Response>) -> Response {
    let answer = timeout(patience, answer).await;
    answer.unwrap_or_else(|_| PortalProblem::too_slow().into_response())
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;
    use tower::ServiceExt as _;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::super::problem;
    use super::*;

    #[tokio::test]
    async fn nobody_is_left_without_an_answer() {
        let answer = within(Duration::ZERO, pending()).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(answer.extensions().get::<PortalProblem>().is_some());
    }

    #[tokio::test]
    async fn a_panic_becomes_a_page() {
        async fn slip() {
            panic!("on purpose");
        }
        let router: Router = Router::new()
            .route("/", get(slip))
            .layer(CatchPanicLayer::custom(problem::panicked));
        let answer = router.oneshot(Request::new(Body::empty())).await;
        let answer = answer.expect("no service fails");
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.extensions().get::<PortalProblem>().is_some());
    }
}
