//! The listener that answers HTTP-01 (RFC 8555 §8.3) and nothing else: whatever host a request names, a path is
//! answered if the database has its token at the moment.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use mailgate_domain::certificates::Challenges;

/// Its one path.
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
