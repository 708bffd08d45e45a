//! The listener for HTTP-01 challenges (RFC 8555 §8.3) only: it ignores the host of a request, and answers a path whose
//! token is in the database.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use mailgate_domain::certificates::Challenges;

/// Its only route.
pub(super) fn challenge_router(challenges: Challenges) -> Router {
    Router::new()
        .route("/.well-known/acme-challenge/{token}", get(answer))
        .with_state(challenges)
}

async fn answer(State(challenges): State<Challenges>, Path(token): Path<String>) -> Response {
    match challenges.answer(&token).await {
        Ok(Some(key_authorization)) => {
            let headers = [
                (CONTENT_TYPE, "application/octet-stream"),
                (CACHE_CONTROL, "no-store"),
            ];
            (headers, key_authorization).into_response()
        }
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
