//! Reads a request's body into memory, in one piece.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;

use super::blocks::Blocks;
use super::body::BodyError;
use super::problem::Problem;
use super::request::overloaded;

/// Bytes of a too large body that are read and discarded, so that a client that reads only after writing gets its
/// response.
const DISCARDED: usize = 4 << 20;

/// The whole body of a request with a JSON content type.
pub(crate) async fn json_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    json_body_within(headers, body, limit, |_| Ok(())).await
}

/// The same, reserving memory before each part is kept.
pub(crate) async fn json_body_within(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    room: impl FnMut(usize) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    says_json(headers)?;
    read(headers, body, limit, room).await
}

/// The whole body of a request that may have none, and then needs no content type.
pub(crate) async fn optional_json_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Option<Bytes>, Problem> {
    let body = whole_body(headers, body, limit).await?;
    if body.is_empty() {
        return Ok(None);
    }
    says_json(headers)?;
    Ok(Some(body))
}

fn says_json(headers: &HeaderMap) -> Result<(), Problem> {
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
    Ok(())
}

/// The whole body, byte for byte.
pub(crate) async fn whole_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    read(headers, body, limit, |_| Ok(())).await
}

async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    mut room: impl FnMut(usize) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    if headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_encoding",
            "The body must not have a Content-Encoding.",
        ));
    }
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(too_large(headers, body, limit, declared).await);
    }
    let mut blocks = Blocks::default();
    while let Some(data) = next(&mut body).await? {
        let length = blocks.len() + data.len();
        if length > limit {
            drop(blocks);
            return Err(too_large(headers, body, limit, length).await);
        }
        blocks.add(&data, limit, &mut room)?;
    }
    Ok(blocks.whole().await.into())
}

/// 413, once a client that doesn't wait for `100 Continue` has written the rest, or much of it.
async fn too_large(headers: &HeaderMap, mut body: Body, limit: usize, seen: usize) -> Problem {
    let problem = Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "payload_too_large",
        format!("The body must not exceed {limit} bytes."),
    );
    let is_asked = headers.contains_key(EXPECT);
    if is_asked || seen > limit.saturating_add(DISCARDED) {
        return problem;
    }
    let mut discarded = 0;
    while discarded < DISCARDED {
        match next(&mut body).await {
            Ok(Some(data)) => discarded += data.len(),
            Ok(None) | Err(_) => break,
        }
    }
    problem
}

/// The next part of the body.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(not_whole(&error)),
            // Trailers are ignored.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn not_whole(error: &axum::Error) -> Problem {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        match error.downcast_ref::<BodyError>() {
            Some(BodyError::NoRoom) => return overloaded(),
            Some(BodyError::TooSlow) => {
                return Problem::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "body_too_slow",
                    "The body arrived too slowly.",
                );
            }
            Some(BodyError::Finishing) => {
                return Problem::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "stopping",
                    "This process is shutting down. Try again shortly.",
                );
            }
            None => cause = error.source(),
        }
    }
    Problem::new(
        StatusCode::BAD_REQUEST,
        "incomplete_body",
        "The body ended early.",
    )
}
