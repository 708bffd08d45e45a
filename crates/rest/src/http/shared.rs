//! Responses that never change while the process runs, the document and the page that shows it, are built once: every
//! client gets the same bytes in memory.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Mutex;

/// Largest file that is cached.
const LARGEST: usize = 8 << 20;

/// The cached responses by path. Only existing files are cached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    by_path: Arc<Mutex<HashMap<String, (HeaderMap, Bytes)>>>,
}

/// This response's body takes no memory of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedBody;

/// Answers `GET` from the cache, or fills it.
pub(crate) async fn once(State(copies): State<Copies>, request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let path = request.uri().path().to_owned();
    let mut by_path = copies.by_path.lock().await;
    if let Some((headers, bytes)) = by_path.get(&path) {
        return shared(headers.clone(), bytes.clone());
    }
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, LARGEST).await else {
        return Response::from_parts(parts, Body::empty());
    };
    parts.headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=300"),
    );
    by_path.insert(path, (parts.headers.clone(), bytes.clone()));
    shared(parts.headers, bytes)
}

fn shared(headers: HeaderMap, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.headers_mut() = headers;
    response.extensions_mut().insert(SharedBody);
    response
}
