//! What is the same for every request: its id, its time limit, its body, its problems.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::Problem;
use crate::types::ids::uuid_at;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bodies from this size on are parsed off the threads that serve connections.
pub(super) const LARGE: usize = 256 * 1024;

/// Gives a request its id and its time, and renders its problem.
pub(super) async fn frame(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let request_id = uuid_at(chrono::Utc::now()).to_string();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started = std::time::Instant::now();
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
    tracing::debug!(
        request_id,
        %method,
        path,
        status = response.status().as_u16(),
        milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "request"
    );
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
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
