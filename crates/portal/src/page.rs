//! A page as a response.

pub(super) mod assets;
pub(crate) mod browser;
pub(super) mod fields;
pub(super) mod frame;
pub(super) mod key_form;
pub(super) mod owned_app;
pub(super) mod problem;
pub(super) mod qr_code;
pub(super) mod requests;
pub(super) mod said;
pub(super) mod sentence;
pub(super) mod session;
pub(super) mod state;
pub(super) mod words;
pub(super) mod wrong;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Redirect, Response};

/// A rendered template, which escapes untrusted values.
pub(super) fn page(status: StatusCode, body: &impl Template) -> Response {
    // Writing to a String can't fail.
    let html = body.render().unwrap_or_default();
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Marks a page whose forms lead to other sites' pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeadsAway;

/// Redirects the browser to a portal path with a GET, after an action.
pub(super) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}
