//! What is the same for every request: its id, its time limit, its body, its problems.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::authority::RateSlot;
use super::problem::Problem;
use crate::accounts::RateDecision;
use crate::types::ids::uuid_at;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bodies from this size on are parsed off the threads that serve connections.
pub(super) const LARGE: usize = 256 * 1024;

/// Gives a request its id and its time, and renders its problem.
pub(super) async fn frame(
    State(limit): State<Duration>,
    mut request: Request,
    next: Next,
) -> Response {
    let request_id = uuid_at(chrono::Utc::now()).to_string();
    let method = request.method().clone();
    // The pattern, not the path: callers put secrets where a pushable key belongs.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let started = std::time::Instant::now();
    let rate = RateSlot::default();
    request.extensions_mut().insert(RateSlot::clone(&rate));
    let mut response = tokio::time::timeout(limit, next.run(request))
        .await
        .unwrap_or_else(|_| {
            Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "timeout",
                "The request took too long. If it was a send, it may still go through.",
            )
            .into_response()
        });
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = problem.render(&request_id);
    }
    if let Some(decision) = rate.get() {
        rate_headers(response.headers_mut(), decision);
    }
    tracing::debug!(
        request_id,
        %method,
        route = route.as_ref().map(MatchedPath::as_str),
        status = response.status().as_u16(),
        milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "request"
    );
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// What the limiter says, as the HTTPAPI working group's draft writes it
/// (draft-ietf-httpapi-ratelimit-headers), and how long to wait after one call too many.
fn rate_headers(headers: &mut HeaderMap, decision: &RateDecision) {
    let (burst, per_second) = (decision.burst, decision.per_second);
    let window = burst.div_ceil(per_second);
    let until_full = (burst - decision.remaining.min(burst)).div_ceil(per_second);
    let mut insert = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    insert("ratelimit-policy", format!("\"key\";q={burst};w={window}"));
    insert(
        "ratelimit",
        format!("\"key\";r={};t={until_full}", decision.remaining),
    );
    if let Some(wait) = decision.retry_after {
        // Whole seconds, so that nobody comes back too early.
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        insert("retry-after", seconds.to_string());
    }
}

/// The whole body of a request that says it is JSON.
pub(super) async fn json_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "The body must be JSON, with Content-Type: application/json.",
        ));
    }
    whole_body(body, limit).await
}

/// The whole body, to the byte.
pub(super) async fn whole_body(body: Body, limit: usize) -> Result<Bytes, Problem> {
    axum::body::to_bytes(body, limit).await.map_err(|error| {
        let too_long = std::error::Error::source(&error)
            .is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>);
        if too_long {
            Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "payload_too_large",
                format!("The body may have {limit} bytes at most."),
            )
        } else {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "incomplete_body",
                "The body ended early.",
            )
        }
    })
}

/// Reads a JSON object.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // A struct would also be read from an array, field by field.
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    match serde_json::from_slice::<T>(body) {
        Ok(value) if is_object => Ok(value),
        Err(error)
            if matches!(
                error.classify(),
                Category::Syntax | Category::Eof | Category::Io
            ) =>
        {
            Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed_json",
                format!(
                    "The body is no JSON: error at line {}, column {}.",
                    error.line(),
                    error.column()
                ),
            ))
        }
        Err(error) if is_object => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            format!("The body can't be read: {error}."),
        )),
        _ => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            "The body must be a JSON object.",
        )),
    }
}
