//! A page as an answer.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Redirect, Response};

/// The page of a template, which has escaped what is foreign in it.
pub(super) fn page(status: StatusCode, body: &impl Template) -> Response {
    // Writing to a String can't fail.
    let html = body.render().unwrap_or_default();
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Marks a page whose forms lead to somebody else's pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeadsAway;

/// Leads the browser to a path of ours by a GET, once something was done.
pub(super) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}
